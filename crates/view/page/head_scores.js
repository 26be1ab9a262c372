// The head report of a file: what each head does, as averages over its queries.

/** @typedef {import("./source.js").Source} Source */

/** Queries that are looked at, at most: a report of a long text is one of a part of its rows. */
const MOST = 1024;

/**
 * @param {Source} source
 * @param {import("./source.js").Site} site
 * @param {import("./source.js").HeadsRequest} request
 * @param {import("./source.js").AskOptions} options
 * @returns {Promise<import("./source.js").Reply>}
 */
export async function headScores(source, site, request, options) {
  const run = (await source.ask({ kind: "meta" })).head.runs[0];
  const labels = run.axes[site.keys].labels, n = run.axes[site.queries].labels.length, cols = labels.length;
  const rows = Math.min(n, Math.max(1, Math.min(MOST, Math.floor((1 << 20) / cols)))), square = site.queries === site.keys;
  const scores = [];
  for (const [done, layer] of site.layers.entries()) {
    options.signal?.throwIfAborted();
    options.onPart?.({ head: { progress: done / site.layers.length, what: "heads" }, buffers: [] });
    for (let head = 0; head < site.heads; head++) {
      const at = { run: request.run, site: site.kind, layer, head };
      const reply = await source.ask({ kind: "tile", at, measure: "weights", rows: [n - rows, n], cols: [0, cols] }, { signal: options.signal });
      scores.push({ layer, head, ...score(new Float32Array(reply.buffers[0]), n - rows, cols, labels, square) });
    }
  }
  return { head: { rows: scores, sampled: rows < n }, buffers: [] };
}

/**
 * @param {Float32Array} values
 * @param {number} first The number of the first row.
 * @param {number} cols
 * @param {string[]} labels
 * @param {boolean} square
 */
function score(values, first, cols, labels, square) {
  const rows = values.length / cols, sum = { entropy: 0, confidence: 0, previous: 0, first: 0, same: 0 };
  let followers = 0;
  for (let y = 0; y < rows; y++) {
    let max = 0;
    const i = first + y;
    for (let j = 0; j < cols; j++) {
      const w = values[y * cols + j];
      if (!(w > 0)) continue;
      sum.entropy -= w * Math.log(w);
      max = Math.max(max, w);
      if (square && j < i && labels[j] === labels[i]) sum.same += w;
    }
    sum.confidence += max;
    sum.first += values[y * cols];
    if (square && i > 0) {
      sum.previous += values[y * cols + i - 1];
      followers++;
    }
  }
  return {
    entropy: sum.entropy / rows, confidence: sum.confidence / rows, first: sum.first / rows,
    previous: followers ? sum.previous / followers : 0, same: sum.same / rows,
  };
}
