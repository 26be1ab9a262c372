// The source of a page inside a notebook: messages to the window around it, which hands them on to the kernel.

import { SourceError } from "./source.js";

/** @typedef {import("./source.js").Source} Source */
/** @typedef {import("./source.js").Request} Request */
/** @typedef {import("./source.js").Reply} Reply */
/** @typedef {import("./source.js").AskOptions} AskOptions */

/**
 * @typedef {object} Channel
 * @property {(message: object) => void} send
 * @property {((message: any, buffers: ArrayBuffer[]) => void) | null} onmessage
 */

/** @implements {Source} */
export class NotebookSource {
  /** @param {Channel} channel */
  constructor(channel) {
    this.channel = channel;
    this.next = 0;
    /** @type {Map<number, {resolve: (reply: Reply) => void, reject: (error: unknown) => void, onPart?: (part: Reply) => void}>} */
    this.waiting = new Map();
    channel.onmessage = (message, buffers) => this.receive(message, buffers);
  }

  /**
   * @param {Request} request
   * @param {AskOptions} [options]
   * @returns {Promise<Reply>}
   */
  ask(request, { signal, onPart } = {}) {
    const id = this.next++;
    return new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      this.waiting.set(id, { resolve, reject, onPart });
      signal?.addEventListener("abort", () => {
        if (!this.waiting.delete(id)) return;
        this.channel.send({ id, cancel: true });
        reject(signal.reason);
      });
      this.channel.send({ id, request });
    });
  }

  /**
   * @param {any} message
   * @param {ArrayBuffer[]} buffers
   */
  receive({ id, head, part }, buffers) {
    const waiting = this.waiting.get(id);
    if (!waiting) return;
    if (part) return waiting.onPart?.({ head, buffers });
    this.waiting.delete(id);
    if (head.error) waiting.reject(new SourceError(head.error.code, head.error.message));
    else waiting.resolve({ head, buffers });
  }
}

/**
 * A channel to the window around this one.
 * @returns {Channel}
 */
export function parentChannel() {
  /** @type {Channel} */
  const channel = { send: (message) => window.parent.postMessage({ foveal: message }, "*"), onmessage: null };
  window.addEventListener("message", ({ data, source }) => {
    if (source === window.parent && data?.foveal) channel.onmessage?.(data.foveal, data.buffers ?? []);
  });
  return channel;
}
