// What of a function's picture is at a point, and what stands next to a box. Pure.
import type { FlowLayout } from "../../model/flow/flow-graph.ts";
import type { FlowModel } from "../../model/flow/flow-boxes.ts";

type Picture = { layout: FlowLayout; model: Pick<FlowModel, "input"> };

export type Direction = "up" | "down" | "left" | "right";

/** The box at a point of the picture; -1 for none. */
export function boxAt({ layout, model }: Picture, x: number, y: number): number {
  const { widths, heights } = model.input;
  return layout.x.findIndex(
    (left, box) => x >= left && x < left + widths[box] && y >= layout.y[box] && y < layout.y[box] + heights[box],
  );
}

/** The box whose middle is nearest to a point; -1 if there is none. */
export function nearestBox({ layout, model }: Picture, x: number, y: number): number {
  const { widths, heights } = model.input;
  let best = -1;
  let nearest = Infinity;
  for (let box = 0; box < widths.length; box++) {
    const distance = Math.hypot(layout.x[box] + widths[box] / 2 - x, layout.y[box] + heights[box] / 2 - y);
    if (distance < nearest) {
      nearest = distance;
      best = box;
    }
  }
  return best;
}

/** The edge nearest to a point, not further than `reach`; -1 for none. */
export function edgeAt({ layout }: Picture, x: number, y: number, reach: number): number {
  let best = -1;
  let nearest = reach;
  for (let edge = 0; edge + 1 < layout.first.length; edge++) {
    for (let at = layout.first[edge]; at + 1 < layout.first[edge + 1]; at++) {
      const [x0, y0, x1, y1] = layout.points.subarray(2 * at, 2 * at + 4);
      const dx = Math.max(Math.min(x0, x1) - x, 0, x - Math.max(x0, x1));
      const dy = Math.max(Math.min(y0, y1) - y, 0, y - Math.max(y0, y1));
      if (dx + dy < nearest) {
        nearest = dx + dy;
        best = edge;
      }
    }
  }
  return best;
}

/** The box nearest in a direction; the same one if there is none. */
export function nextBox({ layout, model }: Picture, from: number, direction: Direction): number {
  const { widths, heights } = model.input;
  const middle = (box: number) => [layout.x[box] + widths[box] / 2, layout.y[box] + heights[box] / 2];
  const [x, y] = middle(from);
  let best = from;
  let nearest = Infinity;
  for (let box = 0; box < widths.length; box++) {
    const [dx, dy] = [middle(box)[0] - x, middle(box)[1] - y];
    const isUpright = direction === "up" || direction === "down";
    const ahead = { up: -dy, down: dy, left: -dx, right: dx }[direction];
    const aside = Math.abs(isUpright ? dx : dy);
    const isOther = isUpright ? layout.y[box] !== layout.y[from] : layout.y[box] === layout.y[from];
    if (ahead > 0 && isOther && ahead + 2 * aside < nearest) {
      nearest = ahead + 2 * aside;
      best = box;
    }
  }
  return best;
}
