// Where the page's data comes from. One interface, three implementations: what the file holds (`source_file.js`), a local
// server (`source_server.js`), a notebook's kernel (`source_notebook.js`). docs/page.md has the same for HTTP and messages.
//
// A source has one method. A request is a `kind` with parameters; a reply is a JSON head and binary buffers. Long work sends
// replies before the last one: progress, or the tokens of a generation. All numbers of tokens count from 0, and a range
// [a, b] ends before b. Sources know tokens only: words are merged by the page.

/**
 * @typedef {object} Source
 * @property {(request: Request, options?: AskOptions) => Promise<Reply>} ask The last reply. Rejects with a `SourceError`, or
 *   with an `AbortError` once the signal is aborted; whoever answers then stops working.
 */

/**
 * @typedef {object} AskOptions
 * @property {AbortSignal} [signal] Says that the answer is no longer wanted.
 * @property {(part: Reply) => void} [onPart] Called with every reply before the last one.
 */

/**
 * @typedef {object} Reply
 * @property {any} head What the kind of the request says, as JSON.
 * @property {ArrayBuffer[]} buffers Numbers, little-endian, rows first.
 */

/** @typedef {MetaRequest | RunRequest | OverviewRequest | MapRequest | TileRequest | CellRequest | NeuronsRequest | PredictRequest | GenerateRequest | HeadsRequest} Request */

/** @typedef {"encoder" | "decoder" | "cross" | "attention"} SiteKind Which attention; `attention` where a page has just one. */
/** @typedef {"weights" | "norms" | "rollout"} Measure Weights; ‖w · v W_o‖; rollout from the first layer up to this one. */
/** @typedef {"max" | "mean"} Pool How the weights that fall on one pixel become one number. */
/** @typedef {[number, number]} Range From a to before b. */
/** @typedef {[SiteKind, number, number]} HeadName Kind, layer, head. */

/**
 * One matrix: a head of a layer, over one run. Head −1 is the mean of all heads; a rollout has no heads and ignores it.
 * @typedef {object} At
 * @property {string} run
 * @property {SiteKind} site
 * @property {number} layer The layer's own number, as `Site.layers` lists them.
 * @property {number} head
 */

/**
 * `meta` → head: `Meta`.
 * @typedef {{kind: "meta"}} MetaRequest
 *
 * @typedef {object} Meta
 * @property {string} title
 * @property {string} note What stands below the title.
 * @property {"en" | "ko"} language The language to begin in.
 * @property {number} digits Digits after the point that numbers are true to: 4, or 2 where arrays are stored in 16 bits.
 * @property {string[]} can The kinds of request that are answered, of `run`, `overview`, `cell`, `neurons`, `predict`,
 *   `generate`, `heads`; `meta`, `map` and `tile` always are.
 * @property {Model[]} models To choose from; empty where there is no `run`.
 * @property {Run[]} runs What has been read. A file has one or two.
 * @property {Record<string, string>} view The view to open with, as in the fragment of a link.
 *
 * @typedef {object} Model
 * @property {string} id
 * @property {string} name
 * @property {("text" | "translation" | "image" | "question")[]} reads What it takes.
 * @property {"inside" | "cache" | "file"} from
 */

/**
 * `run` → parts {progress: 0 to 1, what}, then head: `Run`. Reads a text with a model.
 * @typedef {object} RunRequest
 * @property {"run"} kind
 * @property {string} model
 * @property {string} [text] The text; for a question, the question.
 * @property {string} [passages] What to look for the answer in, one passage a line.
 * @property {string} [image] A PNG or JPEG in base64.
 * @property {HeadName[]} [off] Heads that are switched off.
 *
 * @typedef {object} Run
 * @property {string} id
 * @property {string} model The name of the model.
 * @property {string} text
 * @property {string} [written] What the model wrote: a translation, an answer, the rest of a text.
 * @property {{text: string, weight: number, keys: Range}[]} [passages] What a question was put to: each passage with its share
 *   of the attention (mean over layers, heads and tokens of the answer) and its tokens among the keys.
 * @property {{width: number, height: number, png: string}} [image] Patches across and down, and the image, in base64.
 * @property {Axis[]} axes
 * @property {Site[]} sites
 * @property {HeadName[]} off
 * @property {Prediction[]} next What may come next, most probable first.
 *
 * @typedef {object} Axis Tokens along one side of matrices.
 * @property {string[]} labels Each as it is written, with its spaces.
 * @property {number[]} words The number of each token's word.
 * @property {string[]} word_labels What each word is called; empty: its tokens one after the other.
 * @property {number[]} special The tokens that stand for no text.
 *
 * @typedef {object} Site
 * @property {SiteKind} kind
 * @property {number} queries The axis of the rows.
 * @property {number} keys The axis of the columns.
 * @property {number[]} layers The numbers of the layers that can be shown.
 * @property {number} heads
 * @property {Measure[]} measures
 * @property {[number, number]} salient The layer and head to open with.
 *
 * @typedef {object} Prediction
 * @property {number} token
 * @property {string} label
 * @property {number} p
 */

/**
 * `overview` → head: `Overview`, buffers: [u8 [layers, heads, rows, cols]]. All heads at a glance: each from 0 to its own
 * largest value (254), √ of the ratio; 255 is NaN. A rollout has one picture a layer.
 * @typedef {object} OverviewRequest
 * @property {"overview"} kind
 * @property {string} run
 * @property {SiteKind} site
 * @property {Measure} measure
 *
 * @typedef {object} Overview
 * @property {number} rows Pixels down, at most 64.
 * @property {number} cols
 * @property {number[]} max The largest value of each picture, layer by layer.
 * @property {boolean} sampled Whether the pictures come from some of the rows.
 */

/**
 * `map` → head: `MapHead`, buffers: [f32 [size[0], size[1]]]. A rectangle as a picture: pixel (y, x) pools the rows from
 * ⌊y·T/h⌋ to before ⌊(y + 1)·T/h⌋ of the rectangle's T rows, and columns likewise.
 * @typedef {object} MapRequest
 * @property {"map"} kind
 * @property {At} at
 * @property {Measure} measure
 * @property {Range} rows
 * @property {Range} cols
 * @property {[number, number]} size Pixels down and across; no more than there are rows and columns, and at most 1024 each.
 * @property {Pool} pool
 *
 * @typedef {object} MapHead
 * @property {boolean} [coarse] Whether this is a stored picture of less detail than asked for; a sharp reply follows it. Only
 *   parts are coarse.
 */

/**
 * `tile` → head: {}, buffers: [f32 [rows, cols]]. A rectangle, exactly; at most 2²⁰ cells.
 * @typedef {object} TileRequest
 * @property {"tile"} kind
 * @property {At} at
 * @property {Measure} measure
 * @property {Range} rows
 * @property {Range} cols
 */

/**
 * `cell` → head: `Cell`, buffers: [q f32 [d], k f32 [d]], and, where the source has them, v f32 [dv], share f32 [D]:
 * share = w · v · W_o. How one weight comes about.
 * @typedef {object} CellRequest
 * @property {"cell"} kind
 * @property {At} at A head that is there, not a mean.
 * @property {number} query
 * @property {number} key
 *
 * @typedef {object} Cell
 * @property {number} product q·k.
 * @property {number} scale
 * @property {number} scaled scale · q·k.
 * @property {number | null} score After softcap and bias; null where a mask hides the key.
 * @property {boolean} visible
 * @property {number} max The largest score of the row.
 * @property {number} exp e^(score − max); 0 where hidden.
 * @property {number} sum Σ e^(scoreⱼ − max) over the row.
 * @property {number} weight exp / sum.
 * @property {number} [norm] The length of v · W_o of the key.
 */

/**
 * `neurons` → head: {}, buffers: [q f32 [d], k f32 [keys, d]]. What BertViz's neuron view shows.
 * @typedef {object} NeuronsRequest
 * @property {"neurons"} kind
 * @property {At} at
 * @property {number} query
 * @property {Range} keys At most 512.
 */

/**
 * `predict` → head: `{base: Prediction[], changed: Prediction[]}`. What may come next as it is, and without some heads. Both
 * lists hold the same tokens: the most probable of either, sorted by `base`.
 * @typedef {object} PredictRequest
 * @property {"predict"} kind
 * @property {string} run
 * @property {HeadName[]} off
 */

/**
 * `generate` → parts {token, label, p, text}, one a token, then head: `Run`, the run with what was written. With
 * `watch`, parts have a buffer, f32 [keys]: the weights, in that head, of the query that chose the token.
 * @typedef {object} GenerateRequest
 * @property {"generate"} kind
 * @property {string} run
 * @property {number} count Tokens at most.
 * @property {number} temperature 0 is greedy.
 * @property {number} seed
 * @property {HeadName[]} [off]
 * @property {HeadName} [watch] The head to watch while it writes; head −1 is the mean.
 */

/**
 * `heads` → head: {rows: HeadScores[]}. The head report: what each head does, as averages over the queries.
 * @typedef {object} HeadsRequest
 * @property {"heads"} kind
 * @property {string} run
 * @property {SiteKind} site
 *
 * @typedef {object} HeadScores
 * @property {number} layer
 * @property {number} head
 * @property {number} entropy In nats.
 * @property {number} confidence The mean of each row's largest weight.
 * @property {number} previous Weight on the token before.
 * @property {number} first Weight on the first token: a sink where it is above 0.3.
 * @property {number} same Weight on equal tokens before.
 */

/** Largest side of a map, in pixels. */
export const MOST_PIXELS = 1024;
/** Most cells of a tile. */
export const MOST_CELLS = 1 << 20;

/** What a source says when it cannot answer. */
export class SourceError extends Error {
  /**
   * @param {string} code `request` (what was asked is wrong), `gone` (no such run any more), `busy`, or `failed`.
   * @param {string} message For people, in the language that the source was asked in.
   */
  constructor(code, message) {
    super(message);
    this.name = "SourceError";
    this.code = code;
  }
}

/**
 * One frame of a reply: u32 length of the head, the head as JSON in UTF-8, zeros up to a multiple of 8 from the start of the
 * frame, then the buffers, each again filled up to a multiple of 8. `head.sizes` has their lengths in bytes.
 * @param {Uint8Array} frame
 * @returns {Reply}
 */
export function readFrame(frame) {
  const view = new DataView(frame.buffer, frame.byteOffset, frame.byteLength);
  const length = view.getUint32(0, true);
  const { sizes = [], ...head } = JSON.parse(new TextDecoder().decode(frame.subarray(4, 4 + length)));
  const buffers = [];
  let at = filled(4 + length);
  for (const size of sizes) {
    buffers.push(frame.slice(at, at + size).buffer);
    at += filled(size);
  }
  if (head.error) throw new SourceError(head.error.code, head.error.message);
  return { head, buffers };
}

/** @param {number} bytes */
const filled = (bytes) => Math.ceil(bytes / 8) * 8;
