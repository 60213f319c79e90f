/**
 * Elements made and kept. Texts go in by textContent only, so a topic's name can never become markup.
 */

const SVG = "http://www.w3.org/2000/svg";

/** An element. `props`: `on…` are listeners, true and false are attributes with and without a value, the rest attributes. */
export function h(tag, props = {}, ...children) {
  return filled(document.createElement(tag), props, children);
}

/** The same for SVG. */
export function s(tag, props = {}, ...children) {
  return filled(document.createElementNS(SVG, tag), props, children);
}

function filled(node, props, children) {
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith("on")) {
      node.addEventListener(name.slice(2), value);
    } else {
      setAttribute(node, name, value);
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Touches the document only where something differs: a screen reader hears of changes, not of refreshes. */
export function setText(node, text) {
  const wanted = String(text);
  if (node.textContent !== wanted) {
    node.textContent = wanted;
  }
}

export function setAttribute(node, name, value) {
  if (value === false || value === null || value === undefined) {
    node.removeAttribute(name);
  } else if (node.getAttribute(name) !== String(value === true ? "" : value)) {
    node.setAttribute(name, value === true ? "" : value);
  }
}

/**
 * Makes the children of `parent` those of `items`, in this order. A node that is there for a key stays the same node, so
 * that focus, selection and scrolling stay too. `update(node, item)` is called for new and old ones.
 */
export function keepChildren(parent, items, keyOf, make, update) {
  const known = new Map([...parent.children].map((node) => [node.dataset.key, node]));
  let before = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let node = known.get(key);
    known.delete(key); // of two items with one key the second is made anew
    if (node === undefined) {
      node = make(item);
      node.dataset.key = key;
    }
    if (node === before) {
      before = before.nextElementSibling;
    } else {
      parent.insertBefore(node, before);
    }
    update(node, item);
  }
  while (before !== null) {
    const gone = before;
    before = before.nextElementSibling;
    gone.remove();
  }
}
