// The workers of a file. Jobs wait in a queue, the last asked first; those no longer wanted are taken out of it.

/**
 * @typedef {object} Waiting
 * @property {any} job
 * @property {string[]} keys
 * @property {(at: number) => Promise<import("./engine.js").HeadData>} fetch
 * @property {(result: any) => void} resolve
 * @property {(error: unknown) => void} reject
 * @property {AbortSignal} [signal]
 */

export class Crew {
  /** @param {Promise<ArrayBuffer>} wasm */
  constructor(wasm) {
    const script = new Blob([document.getElementById("worker")?.textContent ?? ""], { type: "text/javascript" });
    const address = URL.createObjectURL(script);
    const count = Math.max(2, Math.min(4, navigator.hardwareConcurrency || 2));
    this.workers = Array.from({ length: count }, () => {
      const worker = new Worker(address);
      worker.onmessage = ({ data }) => this.finish(data);
      return { worker, busy: false, has: new Set() };
    });
    /** @type {Waiting[]} */
    this.queue = [];
    /** @type {Map<number, {waiting: Waiting, member: any}>} */
    this.running = new Map();
    this.next = 0;
    this.ready = wasm.then((bytes) => WebAssembly.compile(bytes)).then((module) => {
      this.workers.forEach(({ worker }) => worker.postMessage({ module }));
    });
  }

  /**
   * @param {any} job
   * @param {string[]} keys Of the heads that it needs.
   * @param {Waiting["fetch"]} fetch
   * @param {AbortSignal} [signal]
   * @returns {Promise<any>}
   */
  async run(job, keys, fetch, signal) {
    await this.ready;
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const waiting = { job, keys, fetch, resolve, reject, signal };
      this.queue.push(waiting);
      signal?.addEventListener("abort", () => {
        this.queue = this.queue.filter((other) => other !== waiting);
        reject(signal.reason);
      });
      this.work();
    });
  }

  async work() {
    const member = this.workers.find(({ busy }) => !busy), waiting = member && this.queue.shift();
    if (!member || !waiting) return;
    member.busy = true;
    try {
      const missing = waiting.keys.map((key, at) => ({ key, at })).filter(({ key }) => !member.has.has(key));
      const load = await Promise.all(missing.map(({ at }) => waiting.fetch(at)));
      missing.forEach(({ key }) => member.has.add(key));
      const id = this.next++;
      this.running.set(id, { waiting, member });
      member.worker.postMessage({ ...waiting.job, id, heads: waiting.keys, load });
    } catch (error) {
      member.busy = false;
      waiting.reject(error);
    }
    this.work();
  }

  /** @param {any} result */
  finish(result) {
    const { waiting, member } = /** @type {any} */ (this.running.get(result.id));
    this.running.delete(result.id);
    member.busy = false;
    (result.dropped ?? []).forEach((/** @type {string} */ key) => member.has.delete(key));
    if (result.error) waiting.reject(new Error(result.error));
    else waiting.resolve(result);
    this.work();
  }
}
