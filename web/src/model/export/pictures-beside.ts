// Two pictures as one, the second at the right of the first. Pure.
import type { FollowPicture, ShownPicture } from "./shown-picture.ts";

/** Both are of one size. */
export function besideEachOther(left: ShownPicture, right: ShownPicture): ShownPicture {
  const size = () => ({ width: 2 * left.size().width, height: left.size().height });
  return {
    name: left.name,
    size,
    paint: async (ratio) => {
      const [a, b] = await Promise.all([left.paint(ratio), right.paint(ratio)]);
      const both = document.createElement("canvas");
      [both.width, both.height] = [a.width + b.width, Math.max(a.height, b.height)];
      const context = both.getContext("2d");
      context?.drawImage(a, 0, 0);
      context?.drawImage(b, a.width, 0);
      return both;
    },
    svg: () => {
      const { width, height } = size();
      const halves = [left.svg(), right.svg()].map((text, i) =>
        // Names of parts are told apart by the half that they are in.
        text.replace("<svg ", `<svg x="${(i * width) / 2}" `).replace(/ id="(\w+)"/g, ` id="${"ab"[i]}-$1"`),
      );
      return `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}">\n${halves.join("")}</svg>\n`;
    },
    follow: left.follow && right.follow && followBoth([left, right], [left.follow, right.follow]),
  };
}

function followBoth(pictures: ShownPicture[], follows: FollowPicture[]): FollowPicture {
  return (onFrame) => {
    // A picture can be read only just after it was drawn: of the other one the last that was is kept.
    const halves = pictures.map((one) => ({ one, canvas: document.createElement("canvas") }));
    const ends = halves.map(({ one, canvas }, i) =>
      follows[i]((draw) => {
        const { width, height } = one.size();
        [canvas.width, canvas.height] = [width, height];
        const context = canvas.getContext("2d");
        if (context) {
          draw(context, width, height);
        }
        onFrame((both, wide, high) => {
          halves.forEach((half, j) => {
            if (half.canvas.width > 0) {
              both.drawImage(half.canvas, (j * wide) / 2, 0, wide / 2, high);
            }
          });
        });
      }),
    );
    return () => ends.forEach((end) => end());
  };
}
