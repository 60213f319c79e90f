/**
 * Requests to the API of the server that the page came from. A refusal is an ApiError with the server's own words.
 */

import { askWho, authorization } from "./session.js";

const ROOT = new URL("../mirrorspark/v1/", document.baseURI);
const ANSWER_MS_MAX = 15_000;
const UNAUTHORIZED = 401;

export class ApiError extends Error {
  /** `status` is 0 where the server did not answer. */
  constructor(status, message) {
    super(message);
    this.name = "ApiError";
    this.status = status;
  }
}

/** The address of a path, each part escaped: `address("flows", "a->b", "topics")`. */
export function address(...parts) {
  return new URL(parts.map(encodeURIComponent).join("/"), ROOT);
}

/** JSON of an answer. `query`: entries without a value are left out. */
export async function ask(parts, { method = "GET", query = {}, body, signal } = {}) {
  const url = address(...parts);
  for (const [name, value] of Object.entries(query)) {
    if (value !== "" && value !== null && value !== undefined) {
      url.searchParams.set(name, value);
    }
  }
  const limit = AbortSignal.timeout(ANSWER_MS_MAX);
  const answer = await send(url, {
    method,
    body: body === undefined ? undefined : JSON.stringify(body),
    headers: body === undefined ? {} : { "Content-Type": "application/json" },
    signal: signal ? AbortSignal.any([signal, limit]) : limit,
  });
  return answer.status === 204 ? null : answer.json();
}

/** The answer as it comes, for a stream. */
export async function send(url, { headers = {}, ...rest } = {}) {
  for (;;) {
    const who = authorization();
    const named = who === null ? headers : { ...headers, Authorization: who };
    const answer = await reached(url, { ...rest, headers: named });
    if (answer.ok) {
      return answer;
    }
    if (answer.status !== UNAUTHORIZED) {
      throw new ApiError(answer.status, await reason(answer));
    }
    await askWho(who);
  }
}

async function reached(url, options) {
  try {
    // Credentials are our own header; without "omit" a browser would put its own question in front of ours.
    return await fetch(url, { ...options, credentials: "omit", cache: "no-store" });
  } catch (error) {
    if (options.signal?.aborted && options.signal.reason?.name !== "TimeoutError") {
      throw error;
    }
    throw new ApiError(0, "the server does not answer");
  }
}

async function reason(answer) {
  try {
    return (await answer.json()).message;
  } catch {
    return `${answer.status} ${answer.statusText}`;
  }
}
