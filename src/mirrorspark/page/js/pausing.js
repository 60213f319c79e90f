/**
 * Pause and resume, asked for and told.
 */

import { ask } from "./api.js";
import { confirmed, say } from "./confirm.js";

const WHOLE = {
  pause: (flow) => ({
    title: `Pause ${flow}?`,
    text:
      "Its lanes hold and keep their place. Records stay on the source and lag grows until somebody resumes it; " +
      "what the source's retention deletes meanwhile is lost to the target. It holds over restarts.",
    yes: "Pause",
  }),
  resume: (flow) => ({
    title: `Resume ${flow}?`,
    text: "It goes on where it was held. Topics that were paused one by one go on too.",
    yes: "Resume",
  }),
};

const ONE = {
  pause: (flow, topic) => ({
    title: `Pause ${topic}?`,
    text: `${flow} holds this topic and keeps its place; others go on. It holds over restarts.`,
    yes: "Pause",
  }),
  resume: (flow, topic) => ({
    title: `Resume ${topic}?`,
    text: `${flow} goes on with this topic where it was held.`,
    yes: "Resume",
  }),
};

/** `verb` is pause or resume; `topic` null: the whole flow. */
export async function changePause(verb, flow, topic = null) {
  const question = topic === null ? WHOLE[verb](flow) : ONE[verb](flow, topic);
  if (!(await confirmed(question))) {
    return;
  }
  const what = topic ?? flow;
  try {
    const body = topic === null ? {} : { topics: [topic] };
    const { is_taken: isTaken } = await ask(["flows", flow, verb], { method: "POST", body });
    say(`${what}: ${verb}d${isTaken ? "" : ", as soon as the mirror reads it"}`);
  } catch (error) {
    say(`${what} was not ${verb}d: ${error.message}`);
  }
}

/** Whether the flow holds the remote topic. */
export function isHeld(flow, remoteTopic) {
  return flow.paused.includes("*") || flow.paused.includes(remoteTopic);
}
