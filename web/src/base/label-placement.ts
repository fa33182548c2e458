// Which labels are shown and where, so that none covers another and none is cut off at the border. Pure.

/** A label that would be shown at a point: sizes and places in pixels. What comes first in a list wins. */
export interface LabelWish {
  id: number;
  x: number;
  y: number;
  width: number;
  height: number;
  /** How far the label keeps from the point. */
  gap: number;
  /** How much further away it may be, where there is no room beside the point; 0 if absent. */
  further?: number;
}

export interface LabelPlace {
  id: number;
  left: number;
  top: number;
  width: number;
  height: number;
}

/** A part of the picture where labels are not to be. */
export interface Rectangle {
  left: number;
  top: number;
  width: number;
  height: number;
}

const CELL = 64;

/**
 * At most `most` of the wishes, in their order, each at the first of some places beside its point that is free.
 * Labels keep `margin` pixels from each other and from the border.
 */
export function placeLabels(
  wishes: readonly LabelWish[],
  frame: { width: number; height: number },
  most: number,
  taken: readonly Rectangle[] = [],
  margin = 3,
): LabelPlace[] {
  const grid = new Map<number, Rectangle[]>();
  const cells = function* (one: Rectangle) {
    for (let row = Math.floor((one.top - margin) / CELL); row <= (one.top + one.height + margin) / CELL; row++) {
      for (
        let column = Math.floor((one.left - margin) / CELL);
        column <= (one.left + one.width + margin) / CELL;
        column++
      ) {
        yield row * 4096 + column;
      }
    }
  };
  const occupy = (one: Rectangle) => {
    for (const cell of cells(one)) {
      const there = grid.get(cell);
      if (there) {
        there.push(one);
      } else {
        grid.set(cell, [one]);
      }
    }
  };
  const isFree = (one: Rectangle) => {
    for (const cell of cells(one)) {
      if (grid.get(cell)?.some((other) => overlap(one, other, margin))) {
        return false;
      }
    }
    return true;
  };
  taken.forEach(occupy);
  const placed: LabelPlace[] = [];
  for (const wish of wishes) {
    if (placed.length >= most) {
      break;
    }
    const { id, x, y, width, height } = wish;
    if (x < 0 || y < 0 || x > frame.width || y > frame.height) {
      continue;
    }
    for (const [left, top] of spots(wish)) {
      const place = { id, left: Math.round(left), top: Math.round(top), width, height };
      const isInside =
        place.left >= margin &&
        place.top >= margin &&
        place.left + width <= frame.width - margin &&
        place.top + height <= frame.height - margin;
      if (isInside && isFree(place)) {
        occupy(place);
        placed.push(place);
        break;
      }
    }
  }
  return placed;
}

/** Upper left corners beside the point of a wish: first the nearest, to the right. */
function* spots({ x, y, width, height, gap, further = 0 }: LabelWish): Generator<[number, number]> {
  for (let away = gap; away <= gap + further; away += height) {
    yield [x + away, y - height / 2];
    yield [x - away - width, y - height / 2];
    yield [x - width / 2, y - away - height];
    yield [x - width / 2, y + away];
    yield [x + away * 0.7, y - away * 0.7 - height];
    yield [x + away * 0.7, y + away * 0.7];
    if (further > 0) {
      yield [x - away * 0.7 - width, y - away * 0.7 - height];
      yield [x - away * 0.7 - width, y + away * 0.7];
    }
  }
}

/** Whether two rectangles are nearer to each other than `margin`. */
export function overlap(a: Rectangle, b: Rectangle, margin = 0): boolean {
  return (
    a.left < b.left + b.width + margin &&
    b.left < a.left + a.width + margin &&
    a.top < b.top + b.height + margin &&
    b.top < a.top + a.height + margin
  );
}
