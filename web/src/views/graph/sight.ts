// What is seen, from where and how it looks: and telling it to a program of the graphics processor.
import type { Rgb } from "../../base/color.ts";
import { type Eye, type Frame, pixelsPerUnit, projectionMatrix } from "../../base/projection.ts";
import type { Program } from "./gl-program.ts";
import { NODE_PIXELS } from "./node-sizes.ts";

/** No node has this number. */
const NO_NODE = 0xffffffff;

/** Where nodes are: x, y, z and the size in units of space of each; and the radius of the cylinder they are on, or 0. */
export interface Places {
  cells: Float32Array;
  cylinderRadius: number;
}

export interface Look {
  ground: Rgb;
  isDark: boolean;
  /** How strong nodes are drawn, 0 to 1. */
  nodeOpacity: number;
  /** How strongly counts change width and size, 0 to 2. */
  countEffect: number;
}

/** What is seen from where. `reach` is how far nodes are from the eye's target at most. */
export interface Sight {
  eye: Eye;
  frame: Frame;
  ratio: number;
  reach: number;
  /** From the places before to those now: 0 to 1. */
  between: number;
}

/** What the nodes are drawn by: textures by node, and the numbers of those that differ, or -1. */
export interface SeenPlaces {
  fromPlaces: WebGLTexture;
  toPlaces: WebGLTexture;
  colors: WebGLTexture;
  heats: WebGLTexture;
  nBlocks: number;
  chosen: number;
  pointed: number;
  /** How much edges follow the surface of a cylinder, and its radius. */
  surface: number;
  cylinder: number;
}

/** What all programs that draw nodes or edges need to know (shaders.ts). */
export function setSight(
  gl: WebGL2RenderingContext,
  program: Program,
  { eye, frame, ratio, reach, between }: Sight,
  look: Look,
  nodes: SeenPlaces,
): void {
  const { leastBlock, mostBlock, leastFunction, mostFunction } = NODE_PIXELS;
  gl.useProgram(program.program);
  gl.activeTexture(gl.TEXTURE0);
  gl.bindTexture(gl.TEXTURE_2D, nodes.fromPlaces);
  gl.activeTexture(gl.TEXTURE1);
  gl.bindTexture(gl.TEXTURE_2D, nodes.toPlaces);
  gl.uniform1i(program.at("fromPlaces"), 0);
  gl.uniform1i(program.at("toPlaces"), 1);
  gl.activeTexture(gl.TEXTURE2);
  gl.bindTexture(gl.TEXTURE_2D, nodes.colors);
  gl.uniform1i(program.at("colors"), 2);
  gl.activeTexture(gl.TEXTURE3);
  gl.bindTexture(gl.TEXTURE_2D, nodes.heats);
  gl.uniform1i(program.at("heats"), 3);
  gl.uniform1f(program.at("countEffect"), look.countEffect);
  gl.uniform1ui(program.at("nBlocks"), nodes.nBlocks);
  gl.uniform1ui(program.at("chosen"), nodes.chosen < 0 ? NO_NODE : nodes.chosen);
  gl.uniform1ui(program.at("pointed"), nodes.pointed < 0 ? NO_NODE : nodes.pointed);
  gl.uniform1f(program.at("pixels"), pixelsPerUnit(frame));
  gl.uniform1f(program.at("ratio"), ratio);
  gl.uniform4f(program.at("sizes"), leastBlock, mostBlock, leastFunction, mostFunction);
  gl.uniform1f(program.at("surface"), nodes.surface);
  gl.uniform1f(program.at("cylinder"), nodes.cylinder);
  gl.uniform2f(program.at("depths"), eye.distance, reach);
  gl.uniform1f(program.at("between"), between);
  gl.uniformMatrix4fv(program.at("matrix"), false, projectionMatrix(eye, frame, reach));
  gl.uniform2f(program.at("viewport"), frame.width * ratio, frame.height * ratio);
}
