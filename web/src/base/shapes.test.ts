import fc from "fast-check";
import { expect, test } from "vitest";
import { anyCharacter } from "./properties.test-support.ts";
import { element, escapeXml, shapesToSvg } from "./shapes.ts";

test("nothing of a text becomes markup, and it can be read again", () => {
  const entities: Record<string, string> = { "&amp;": "&", "&lt;": "<", "&gt;": ">", "&quot;": '"', "&#39;": "'" };
  fc.assert(
    fc.property(fc.string({ unit: anyCharacter, maxLength: 12 }), (text) => {
      const escaped = escapeXml(text);
      expect(escaped).not.toMatch(/[<>"']/);
      expect(escaped.replace(/&(?!(?:amp|lt|gt|quot|#39);)/g, "!")).toBe(escaped);
      const again = escaped.replace(/&[^;]+;/g, (found) => entities[found]);
      expect(again.length).toBe(text.length);
      for (let i = 0; i < text.length; i++) {
        expect([text[i], "\ufffd"]).toContain(again[i]);
      }
    }),
  );
});

test("what XML has no way to write is replaced", () => {
  expect(escapeXml("a\0b\x1bc\ud800d\ufffee\tf\u{1f9f5}")).toBe("a\ufffdb\ufffdc\ufffdd\ufffde\tf\u{1f9f5}");
});

test("attributes are escaped, and left out where they have no value", () => {
  expect(element("a", { b: '"><x', c: 1.23456, d: undefined })).toBe('<a b="&quot;&gt;&lt;x" c="1.23"/>');
});

test("shapes are elements, a ramp with its gradient", () => {
  const svg = shapesToSvg(
    [
      { kind: "box", x: 1, y: 2, width: 3, height: 4, radius: 5, fill: "#fff" },
      { kind: "line", x: 1, y: 2, toX: 3, toY: 4, stroke: "#000", width: 1 },
      { kind: "ramp", x: 0, y: 0, width: 9, height: 9, colors: ["#000", "#fff"] },
      {
        kind: "text",
        x: 0,
        y: 0,
        text: "<b>",
        fill: "#000",
        font: { family: "monospace", size: 12 },
        anchor: "end",
      },
    ],
    "legend",
  );
  expect(svg).toContain('<rect x="1" y="2" width="3" height="4" rx="5" fill="#fff"/>');
  expect(svg).toContain('<linearGradient id="legend-2">');
  expect(svg).toContain('fill="url(#legend-2)"');
  expect(svg).toContain("&lt;b&gt;</text>");
});

test("what a shape is told as is in its element", () => {
  const told = { class: "bar", title: "<a>\n3 calls" };
  const svg = shapesToSvg(
    [
      { kind: "box", x: 1, y: 2, width: 3, height: 4, radius: 0, fill: "#fff", told },
      { kind: "curve", path: "M0 0C1 1 2 2 3 3", stroke: "#000", width: 2, opacity: 0.5, told },
      {
        kind: "text",
        x: 0,
        y: 0,
        text: "&",
        fill: "#000",
        font: { family: "monospace", size: 12 },
        anchor: "start",
        told,
      },
    ],
    "calls",
  ).split(/\n(?=<)/);
  expect(svg).toHaveLength(3);
  for (const one of svg) {
    expect(one).toContain('class="bar"');
    expect(one).toContain("<title>&lt;a&gt;\n3 calls</title>");
  }
  expect(svg[1]).toContain('d="M0 0C1 1 2 2 3 3" fill="none" stroke="#000" stroke-width="2" stroke-opacity="0.5"');
});
