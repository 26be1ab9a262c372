// The source of a served page: one address, frames as docs/page.md says.

import { SourceError, readFrame } from "./source.js";

/** @typedef {import("./source.js").Source} Source */
/** @typedef {import("./source.js").Request} Request */
/** @typedef {import("./source.js").Reply} Reply */
/** @typedef {import("./source.js").AskOptions} AskOptions */

/** @implements {Source} */
export class ServerSource {
  /** @param {string} address */
  constructor(address) {
    this.address = address;
  }

  /**
   * @param {Request} request
   * @param {AskOptions} [options]
   * @returns {Promise<Reply>}
   */
  async ask(request, { signal, onPart } = {}) {
    const headers = { "Content-Type": "application/json", "Accept-Language": document.documentElement.lang };
    const response = await fetch(this.address, { method: "POST", headers, body: JSON.stringify(request), signal });
    const type = response.headers.get("Content-Type") ?? "";
    if (!type.startsWith("application/octet-stream") || !response.body) {
      throw new SourceError("failed", `${response.status} ${response.statusText}`);
    }
    const reader = new FrameReader(response.body.getReader());
    for (;;) {
      const frame = await reader.next();
      if (!frame) throw new SourceError("failed", "the answer ended too early");
      const reply = readFrame(frame);
      if (!reply.head.part) return reply;
      onPart?.(reply);
    }
  }
}

/** Cuts a stream of bytes into frames. */
class FrameReader {
  /** @param {ReadableStreamDefaultReader<Uint8Array>} reader */
  constructor(reader) {
    this.reader = reader;
    /** @type {Uint8Array[]} */
    this.parts = [];
    this.length = 0;
  }

  async next() {
    const size = await this.take(4);
    return size && this.take(new DataView(size.buffer).getUint32(0, true));
  }

  /**
   * @param {number} count
   * @returns {Promise<Uint8Array | null>}
   */
  async take(count) {
    while (this.length < count) {
      const { done, value } = await this.reader.read();
      if (done) return null;
      this.parts.push(value);
      this.length += value.length;
    }
    const out = new Uint8Array(count);
    for (let at = 0; at < count; ) {
      const part = this.parts[0], used = Math.min(part.length, count - at);
      out.set(part.subarray(0, used), at);
      at += used;
      if (used === part.length) this.parts.shift();
      else this.parts[0] = part.subarray(used);
    }
    this.length -= count;
    return out;
  }
}
