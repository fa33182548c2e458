// What the graphics processor keeps of a picture: lists of nodes and of edges, and textures with a cell for each node.

const TEXTURE_WIDTH = 1024;
/** Of more cells than so many the whole texture is filled anew: that is then quicker. */
const MOST_SINGLE_CELLS = 64;

/** Numbers of nodes. */
export interface NodeList {
  array: WebGLVertexArrayObject;
  nodes: WebGLBuffer;
  count: number;
}

/** Two ends, a colour and a heat by edge. */
export interface EdgeList {
  array: WebGLVertexArrayObject;
  ends: WebGLBuffer;
  colors: WebGLBuffer;
  heats: WebGLBuffer;
  count: number;
}

export function makeNodeList(gl: WebGL2RenderingContext): NodeList {
  const [array, nodes] = [gl.createVertexArray(), gl.createBuffer()];
  gl.bindVertexArray(array);
  gl.bindBuffer(gl.ARRAY_BUFFER, nodes);
  gl.enableVertexAttribArray(0);
  gl.vertexAttribIPointer(0, 1, gl.UNSIGNED_INT, 0, 0);
  gl.bindVertexArray(null);
  return { array, nodes, count: 0 };
}

/** Where in its buffers drawing begins is said by who draws. */
export function makeEdgeList(gl: WebGL2RenderingContext): EdgeList {
  const array = gl.createVertexArray();
  gl.bindVertexArray(array);
  for (const location of [0, 1, 2]) {
    gl.enableVertexAttribArray(location);
    gl.vertexAttribDivisor(location, 1);
  }
  gl.bindVertexArray(null);
  return { array, ends: gl.createBuffer(), colors: gl.createBuffer(), heats: gl.createBuffer(), count: 0 };
}

export function fillNodes(gl: WebGL2RenderingContext, list: NodeList, nodes: Uint32Array): void {
  list.count = nodes.length;
  fill(gl, list.nodes, nodes);
}

/** `ends` has two nodes, `colors` four bytes, `heat` one byte by edge. */
export interface EdgeContent {
  ends: Uint32Array;
  colors: Uint8Array;
  heat: Uint8Array;
}

export function fillEdges(gl: WebGL2RenderingContext, list: EdgeList, { ends, colors, heat }: EdgeContent): void {
  list.count = ends.length / 2;
  fill(gl, list.ends, ends);
  fill(gl, list.colors, colors);
  fill(gl, list.heats, heat);
}

export function disposeList(gl: WebGL2RenderingContext, list: NodeList | EdgeList): void {
  gl.deleteVertexArray(list.array);
  for (const buffer of "nodes" in list ? [list.nodes] : [list.ends, list.colors, list.heats]) {
    gl.deleteBuffer(buffer);
  }
}

/** A texture whose cells are read one by one. */
export function makeTexture(gl: WebGL2RenderingContext): WebGLTexture {
  const texture = gl.createTexture();
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, 1, 1, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MIN_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_MAG_FILTER, gl.NEAREST);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
  gl.texParameteri(gl.TEXTURE_2D, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
  return texture;
}

/** Four numbers by node, row by row: floating point numbers as they are, bytes as shares of 255. */
export function fillTexture(gl: WebGL2RenderingContext, texture: WebGLTexture, cells: Float32Array | Uint8Array): void {
  const height = Math.max(Math.ceil(cells.length / 4 / TEXTURE_WIDTH), 1);
  const isFloat = cells instanceof Float32Array;
  const padded = isFloat ? new Float32Array(4 * TEXTURE_WIDTH * height) : new Uint8Array(4 * TEXTURE_WIDTH * height);
  padded.set(cells);
  const [format, type] = isFloat ? [gl.RGBA32F, gl.FLOAT] : [gl.RGBA8, gl.UNSIGNED_BYTE];
  gl.bindTexture(gl.TEXTURE_2D, texture);
  gl.texImage2D(gl.TEXTURE_2D, 0, format, TEXTURE_WIDTH, height, 0, gl.RGBA, type, padded);
}

/** Some cells of such a texture anew: those of `nodes`, out of all of them. */
export function fillCells(
  gl: WebGL2RenderingContext,
  texture: WebGLTexture,
  cells: Float32Array,
  nodes: readonly number[],
): void {
  if (nodes.length > MOST_SINGLE_CELLS) {
    fillTexture(gl, texture, cells);
    return;
  }
  gl.bindTexture(gl.TEXTURE_2D, texture);
  for (const node of nodes) {
    const [x, y] = [node % TEXTURE_WIDTH, Math.floor(node / TEXTURE_WIDTH)];
    gl.texSubImage2D(gl.TEXTURE_2D, 0, x, y, 1, 1, gl.RGBA, gl.FLOAT, cells.subarray(4 * node, 4 * node + 4));
  }
}

export function fill(
  gl: WebGL2RenderingContext,
  buffer: WebGLBuffer,
  content: Uint32Array | Uint8Array | Float32Array,
): void {
  gl.bindBuffer(gl.ARRAY_BUFFER, buffer);
  gl.bufferData(gl.ARRAY_BUFFER, content, gl.DYNAMIC_DRAW);
}
