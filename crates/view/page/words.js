// What the page says, in its two languages.

const WORDS = {
  en: {
    query: "Query", key: "Key", kind: "Attention", attention: "Self", encoder: "Encoder", decoder: "Decoder", cross: "Cross",
    layer: "Layer", head: "Head", mean: "mean", all: "all", measure: "Show", weights: "Weights", norms: "Norm", rollout: "Rollout",
    scale: "Colours", linear: "Linear", root: "Root", log: "Log", view: "View", map: "Map", lines: "Lines", merge: "Merge words", hide: "Hide special tokens", overview: "All heads",
    text: "Text: the shade is what the chosen token attends to",
    strongest: (token) => `What “${token}” attends to`, nothing: "Point at a token, or click to pin one",
    help: "Hover for the value, click to pin, wheel to zoom, drag to move, double-click to see all. Keys: arrows, Enter, Esc; , and . for the head; < and > for the layer",
    light: "Light", dark: "Dark", auto: "Auto", other: "한국어", saveSvg: "Save as SVG", savePng: "Save as PNG", less: "previous", more: "next",
  },
  ko: {
    query: "쿼리", key: "키", kind: "어텐션", attention: "셀프", encoder: "인코더", decoder: "디코더", cross: "교차",
    layer: "층", head: "헤드", mean: "평균", all: "전체", measure: "표시", weights: "가중치", norms: "노름", rollout: "롤아웃",
    scale: "색", linear: "선형", root: "제곱근", log: "로그", view: "보기", map: "지도", lines: "선", merge: "단어로 합치기", hide: "특수 토큰 숨기기", overview: "모든 헤드",
    text: "본문: 고른 토큰이 보는 만큼 짙어집니다",
    strongest: (token) => `“${token}”이(가) 보는 곳`, nothing: "토큰을 가리키거나, 눌러서 고정하세요",
    help: "가리키면 값, 누르면 고정, 휠로 확대, 끌어서 이동, 두 번 누르면 전체. 키보드: 방향키, Enter, Esc; 헤드는 , 와 . 층은 < 와 >",
    light: "밝게", dark: "어둡게", auto: "자동", other: "English", saveSvg: "SVG로 저장", savePng: "PNG로 저장", less: "이전", more: "다음",
  },
};
