// Small matrices: pooling, merging, scaling.

/** @typedef {{values: Float32Array, rows: number, cols: number}} Matrix */

/**
 * A matrix as a picture of `size` pixels, as the engine's maps are cut.
 * @param {Matrix} matrix
 * @param {[number, number]} size
 * @param {boolean} mean
 */
export function pooled({ values, rows, cols }, [height, width], mean) {
  const cut = (/** @type {number} */ parts, /** @type {number} */ whole) =>
    Array.from({ length: parts + 1 }, (_, i) => Math.floor((i * whole) / parts));
  return gathered({ values, rows, cols }, cut(height, rows), cut(width, cols), mean ? "mean" : "max");
}

/**
 * Pixels between the given cuts: the largest of their values, their mean, or `words`: sums over columns, means over rows.
 * @param {Matrix} matrix
 * @param {ArrayLike<number>} down
 * @param {ArrayLike<number>} across
 * @param {"max" | "mean" | "words"} how
 */
export function gathered({ values, cols }, down, across, how) {
  const height = down.length - 1, width = across.length - 1;
  const out = new Float32Array(height * width);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      let max = 0, sum = 0;
      for (let i = down[y]; i < down[y + 1]; i++) {
        for (let j = across[x]; j < across[x + 1]; j++) {
          const value = values[i * cols + j];
          sum += value;
          if (!(value <= max)) max = value;
        }
      }
      const tall = Math.max(1, down[y + 1] - down[y]), wide = Math.max(1, across[x + 1] - across[x]);
      out[y * width + x] = how === "max" ? (Number.isNaN(sum) ? NaN : max) : how === "mean" ? sum / (tall * wide) : sum / tall;
    }
  }
  return out;
}

/**
 * Columns times their norms, in place; `first` is the number of the first column.
 * @param {Float32Array} values
 * @param {number} cols
 * @param {Float32Array | null} norms
 * @param {number} first
 */
export function scaledBy(values, cols, norms, first) {
  if (norms) for (let k = 0; k < values.length; k++) values[k] *= norms[first + (k % cols)];
  return values;
}

/** @param {ArrayLike<number>} values */
export function largest(values) {
  let max = 0;
  for (let k = 0; k < values.length; k++) if (values[k] > max) max = values[k];
  return max;
}
