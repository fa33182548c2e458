// What is under the pointer, in words.
import type { NodeFacts } from "./node-facts.ts";

export interface Hovered {
  x: number;
  y: number;
  /** The picture's size: the tooltip keeps inside. */
  width: number;
  height: number;
  facts: NodeFacts;
  /** How often it was executed. */
  words: string;
}

const WIDTH = 330;
const HEIGHT = 84;
const AWAY = 16;

export function Tooltip({ hovered }: { hovered: Hovered | null }) {
  if (!hovered) {
    return null;
  }
  const { x, y, width, height, facts, words } = hovered;
  const left = x + AWAY + WIDTH > width ? Math.max(x - AWAY - WIDTH, 0) : x + AWAY;
  const top = Math.max(Math.min(y + AWAY, height - HEIGHT - AWAY), 0);
  return (
    <div class="graph-tooltip" role="tooltip" style={{ left: `${left}px`, top: `${top}px`, maxWidth: `${WIDTH}px` }}>
      <strong>{facts.symbol}</strong>
      <code>{facts.address}</code>
      <span>{words}</span>
      <span class="quiet">{facts.image}</span>
    </div>
  );
}
