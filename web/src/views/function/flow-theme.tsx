// Colours of the function's picture, as the theme has them, and how its edges are drawn.
import type { TokenKind } from "../../base/instruction-text.ts";
import { FLOW_STYLES } from "../../model/flow/flow-boxes.ts";
import { themeColors, themeVariables } from "../theme-variables.ts";

/** Dashes of edges by style, besides their colours: nobody needs to tell colours apart. */
export const EDGE_DASHES: readonly (readonly number[])[] = [[], [7, 4], [12, 3, 2, 3], [], [2, 3]];
export const EDGE_VARIABLES = ["--taken", "--not-taken", "--flow-jump", "--straight", "--flow-return"] as const;
const TOKEN_KINDS: TokenKind[] = ["mnemonic", "branch", "register", "number", "name", "word", "sign", "bad"];

export interface FlowTheme {
  ground: string;
  panel: string;
  line: string;
  text: string;
  quiet: string;
  accent: string;
  recent: string;
  edges: string[];
  tokens: Record<TokenKind, string>;
  font: string;
}

/** What the theme says where `element` is. */
export function readTheme(element: Element): FlowTheme {
  const value = themeVariables(element);
  return {
    ...themeColors(element, ["ground", "panel", "line", "text", "quiet", "accent"]),
    recent: value("--flow-recent"),
    edges: EDGE_VARIABLES.map(value),
    tokens: Object.fromEntries(TOKEN_KINDS.map((kind) => [kind, value(`--code-${kind}`)])) as Record<TokenKind, string>,
    font: value("--mono"),
  };
}

/** What the lines mean. */
export function FlowLegend() {
  return (
    <ul class="flow-legend" aria-label="Lines">
      {FLOW_STYLES.map((name, style) => (
        <li key={name}>
          <svg width="34" height="8" aria-hidden="true">
            <line
              x1="1"
              y1="4"
              x2="33"
              y2="4"
              stroke={`var(${EDGE_VARIABLES[style]})`}
              stroke-width="2.5"
              stroke-dasharray={EDGE_DASHES[style].join(" ")}
            />
          </svg>
          {name}
        </li>
      ))}
    </ul>
  );
}
