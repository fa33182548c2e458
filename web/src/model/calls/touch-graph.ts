// The picture of who did what with what: processes on the left, entities on the right, a line for each pair.
import type { Touch } from "../../api/calls.ts";

export const ROW_HEIGHT = 24;

/** Across: how wide the picture is, where lines begin and end, and how far from them names are. */
export const TOUCH_PLACES = { width: 640, left: 170, right: 400, gap: 6 } as const;

/** There is room for so many letters of a name. */
const MOST_LETTERS = { process: 26, entity: 36 } as const;

export interface TouchNode {
  id: number;
  name: string;
  /** As much of its name as there is room for. */
  label: string;
  kind: string;
  calls: number;
  y: number;
}

export interface TouchLine {
  from: TouchNode;
  to: TouchNode;
  touch: Touch;
  /** In pixels, by the logarithm of the calls. */
  width: number;
}

export interface TouchGraph {
  processes: TouchNode[];
  entities: TouchNode[];
  lines: TouchLine[];
  height: number;
  /** Pairs that there was no room for. */
  omitted: number;
}

/** Those with the most calls on top; at most so many on each side. `nameOf` says what a process is called. */
export function layoutTouches(
  touches: readonly Touch[],
  nameOf: (process: number) => string,
  most: number,
): TouchGraph {
  const processes = gather(touches, most, MOST_LETTERS.process, (touch) => [
    touch.process,
    nameOf(touch.process),
    "process",
  ]);
  const entities = gather(touches, most, MOST_LETTERS.entity, (touch) => [touch.entity, touch.name, touch.kind]);
  const rows = Math.max(processes.size, entities.size);
  place(processes, rows);
  place(entities, rows);
  const highest = Math.log1p(touches.reduce((best, touch) => Math.max(best, touch.calls), 1));
  const lines = touches.flatMap((touch) => {
    const [from, to] = [processes.get(touch.process), entities.get(touch.entity)];
    return from && to ? [{ from, to, touch, width: 1 + (4 * Math.log1p(touch.calls)) / highest }] : [];
  });
  return {
    processes: [...processes.values()],
    entities: [...entities.values()],
    lines,
    height: rows * ROW_HEIGHT,
    omitted: touches.length - lines.length,
  };
}

/** The way of a line, as an SVG path. */
export function touchPath({ from, to }: TouchLine): string {
  const { left, right } = TOUCH_PLACES;
  const middle = (left + right) / 2;
  return `M${left} ${from.y}C${middle} ${from.y} ${middle} ${to.y} ${right} ${to.y}`;
}

function gather(
  touches: readonly Touch[],
  most: number,
  letters: number,
  tell: (touch: Touch) => [number, string, string],
): Map<number, TouchNode> {
  const found = new Map<number, TouchNode>();
  for (const touch of touches) {
    const [id, name, kind] = tell(touch);
    const node = found.get(id) ?? { id, name, label: shorten(name, letters), kind, calls: 0, y: 0 };
    node.calls += touch.calls;
    found.set(id, node);
  }
  const ranked = [...found.values()].sort((a, b) => b.calls - a.calls || a.id - b.id).slice(0, most);
  return new Map(ranked.map((node) => [node.id, node]));
}

function place(nodes: Map<number, TouchNode>, rows: number): void {
  const step = (rows * ROW_HEIGHT) / Math.max(nodes.size, 1);
  [...nodes.values()].forEach((node, index) => (node.y = (index + 0.5) * step));
}

function shorten(name: string, letters: number): string {
  return name.length > letters ? `${name.slice(0, letters)}…` : name;
}
