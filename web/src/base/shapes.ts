// Simple shapes that are painted on a canvas or written as SVG: what lies over a picture, such as its legend. Pure but for
// the canvas that it is given.

export type Shape = (
  | { kind: "box"; x: number; y: number; width: number; height: number; radius: number; fill: string; stroke?: string }
  | { kind: "line"; x: number; y: number; toX: number; toY: number; stroke: string; width: number }
  | { kind: "ramp"; x: number; y: number; width: number; height: number; colors: readonly string[] }
  | { kind: "curve"; path: string; stroke: string; width: number; opacity: number }
  | { kind: "text"; x: number; y: number; text: string; fill: string; font: Font; anchor: "start" | "middle" | "end" }
) & { told?: Told };

/** What something in an SVG is: a class to find it by, and what is told of it when it is pointed at. */
export interface Told {
  class: string;
  title: string;
}

export interface Font {
  family: "sans-serif" | "monospace";
  size: number;
  isBold?: boolean;
}

/** Text in the middle of a line of text. */
const MIDDLE = 0.35;

export function paintShapes(context: CanvasRenderingContext2D, shapes: readonly Shape[]): void {
  for (const shape of shapes) {
    switch (shape.kind) {
      case "box":
        context.beginPath();
        context.roundRect(shape.x, shape.y, shape.width, shape.height, shape.radius);
        context.fillStyle = shape.fill;
        context.fill();
        if (shape.stroke !== undefined) {
          context.lineWidth = 1;
          context.strokeStyle = shape.stroke;
          context.stroke();
        }
        break;
      case "line":
        context.beginPath();
        context.moveTo(shape.x, shape.y);
        context.lineTo(shape.toX, shape.toY);
        context.lineWidth = shape.width;
        context.strokeStyle = shape.stroke;
        context.stroke();
        break;
      case "ramp": {
        const ramp = context.createLinearGradient(shape.x, 0, shape.x + shape.width, 0);
        shape.colors.forEach((color, i) => ramp.addColorStop(i / Math.max(shape.colors.length - 1, 1), color));
        context.fillStyle = ramp;
        context.fillRect(shape.x, shape.y, shape.width, shape.height);
        break;
      }
      case "curve":
        context.lineWidth = shape.width;
        context.strokeStyle = shape.stroke;
        context.globalAlpha = shape.opacity;
        context.stroke(new Path2D(shape.path));
        context.globalAlpha = 1;
        break;
      case "text":
        context.font = `${shape.font.isBold ? "600 " : ""}${shape.font.size}px ${shape.font.family}`;
        context.textBaseline = "alphabetic";
        context.textAlign = shape.anchor === "middle" ? "center" : shape.anchor;
        context.fillStyle = shape.fill;
        context.fillText(shape.text, shape.x, shape.y + MIDDLE * shape.font.size);
        context.textAlign = "start";
        break;
    }
  }
}

/** The shapes as elements of SVG. `id` begins the names of what they refer to. */
export function shapesToSvg(shapes: readonly Shape[], id: string): string {
  return shapes
    .map((shape, index) => {
      const { told } = shape;
      const title = told ? element("title", {}, escapeXml(told.title)) : null;
      switch (shape.kind) {
        case "box": {
          const { x, y, width, height, radius, fill, stroke } = shape;
          return element("rect", { class: told?.class, x, y, width, height, rx: radius, fill, stroke }, title);
        }
        case "line":
          return element(
            "line",
            {
              class: told?.class,
              x1: shape.x,
              y1: shape.y,
              x2: shape.toX,
              y2: shape.toY,
              stroke: shape.stroke,
              "stroke-width": shape.width,
            },
            title,
          );
        case "ramp": {
          const { x, y, width, height, colors } = shape;
          const stops = colors.map((color, i) =>
            element("stop", { offset: i / Math.max(colors.length - 1, 1), "stop-color": color }),
          );
          const name = `${id}-${index}`;
          return (
            element("linearGradient", { id: name }, stops.join("")) +
            element("rect", { class: told?.class, x, y, width, height, fill: `url(#${name})` }, title)
          );
        }
        case "curve":
          return element(
            "path",
            {
              class: told?.class,
              d: shape.path,
              fill: "none",
              stroke: shape.stroke,
              "stroke-width": shape.width,
              "stroke-opacity": shape.opacity,
            },
            title,
          );
        case "text":
          return element(
            "text",
            {
              class: told?.class,
              x: shape.x,
              y: shape.y + MIDDLE * shape.font.size,
              fill: shape.fill,
              "font-family": shape.font.family,
              "font-size": shape.font.size,
              "font-weight": shape.font.isBold ? 600 : undefined,
              "text-anchor": shape.anchor === "start" ? undefined : shape.anchor,
            },
            (title ?? "") + escapeXml(shape.text),
          );
      }
    })
    .join("\n");
}

/** An element of XML. `content` is put in as it is; values of attributes are escaped, numbers rounded. */
export function element(
  name: string,
  attributes: Record<string, string | number | undefined>,
  content: string | null = null,
): string {
  const words = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => ` ${key}="${typeof value === "number" ? round(value) : escapeXml(String(value))}"`);
  return content === null ? `<${name}${words.join("")}/>` : `<${name}${words.join("")}>${content}</${name}>`;
}

/** A hundredth of a pixel is enough. */
export function round(value: number): string {
  return String(Math.round(value * 100) / 100);
}

// What XML 1.0 has no way to write: most control characters, halves of characters, and two that are none.
const NOT_XML =
  /[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

const ESCAPES: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };

/** Text as XML has it, whatever is in it. */
export function escapeXml(text: string): string {
  return text.replace(NOT_XML, "\ufffd").replace(/[&<>"']/g, (letter) => ESCAPES[letter]);
}
