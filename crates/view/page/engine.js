// The engine in a worker: one head at a time in the module's memory.

/**
 * @typedef {object} HeadData What a head's weights are computed from.
 * @property {string} key Names it, so that it is loaded once.
 * @property {number} queries
 * @property {number} keys
 * @property {number} dim
 * @property {boolean} half Whether q and k are in 16 bits.
 * @property {ArrayBuffer} q
 * @property {ArrayBuffer} k
 * @property {ArrayBuffer} lse
 * @property {(number | null)[]} options
 */

/** Places in the module's memory, as its `pointer` counts them. */
const [Q, K, LSE, OPTIONS, OUT, STEPS] = [0, 1, 2, 3, 4, 5];

export class Engine {
  /** @param {WebAssembly.Module} module */
  constructor(module) {
    /** @type {any} */
    this.call = new WebAssembly.Instance(module).exports;
    this.loaded = "";
  }

  /** @param {HeadData} head */
  load(head) {
    if (this.loaded === head.key) return;
    this.call.load(head.queries, head.keys, head.dim);
    this.put(head.q, Q, head.half);
    this.put(head.k, K, head.half);
    this.bytes(this.call.pointer(LSE), head.lse.byteLength).set(new Uint8Array(head.lse));
    const options = new Float64Array(head.options.map((option) => option ?? NaN));
    this.bytes(this.call.pointer(OPTIONS), options.byteLength).set(new Uint8Array(options.buffer));
    this.loaded = head.key;
  }

  /**
   * @param {ArrayBuffer} numbers
   * @param {number} which
   * @param {boolean} half
   */
  put(numbers, which, half) {
    const at = half ? this.call.bits(numbers.byteLength / 2) : this.call.pointer(which);
    this.bytes(at, numbers.byteLength).set(new Uint8Array(numbers));
    if (half) this.call.widen(which);
  }

  /**
   * The memory moves when it grows: views are made when they are needed.
   * @param {number} at
   * @param {number} length
   */
  bytes(at, length) {
    return new Uint8Array(this.call.memory.buffer, at, length);
  }

  /** @param {number} count */
  answer(count) {
    if (count < 0) throw new RangeError("no such part of the matrix");
    return new Float32Array(this.call.memory.buffer, this.call.pointer(OUT), count).slice();
  }

  /**
   * @param {HeadData} head
   * @param {[number, number]} rows
   * @param {[number, number]} cols
   */
  tile(head, rows, cols) {
    this.load(head);
    return this.answer(this.call.tile(...rows, ...cols));
  }

  /**
   * @param {HeadData} head
   * @param {[number, number]} rows
   * @param {[number, number]} cols
   * @param {[number, number]} size
   * @param {boolean} mean
   */
  map(head, rows, cols, size, mean) {
    this.load(head);
    return this.answer(this.call.map(...rows, ...cols, ...size, mean ? 1 : 0));
  }

  /**
   * @param {HeadData} head
   * @param {number} query
   * @param {number} key
   */
  cell(head, query, key) {
    this.load(head);
    if (this.call.cell(query, key) < 0) throw new RangeError("no such cell");
    return [...new Float64Array(this.call.memory.buffer, this.call.pointer(STEPS), 9)];
  }

  /**
   * a · b of square matrices.
   * @param {Float32Array} a
   * @param {Float32Array} b
   * @param {number} n
   */
  multiply(a, b, n) {
    [a, b].forEach((matrix, which) => {
      const at = this.call.square(which, n);
      new Float32Array(this.call.memory.buffer, at, n * n).set(matrix);
    });
    if (this.call.multiply(n) < 0) throw new RangeError("no such product");
    return new Float32Array(this.call.memory.buffer, this.call.square(2, n), n * n).slice();
  }
}
