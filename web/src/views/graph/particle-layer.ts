// Particles over a picture that stands still: the picture is kept when it was drawn, and each frame is a copy of it with the
// particles where they are by then. So a frame costs the same however large the graph is.
import type { Particles } from "../../model/graph/particles.ts";
import { fill, makeTexture } from "./gl-lists.ts";
import { linkProgram, type Program } from "./gl-program.ts";
import { PARTICLE_FRAGMENT, PARTICLE_VERTEX, STILL_FRAGMENT, WHOLE_VERTEX } from "./shaders.ts";

export class ParticleLayer {
  readonly program: Program;
  private readonly array: WebGLVertexArrayObject;
  private readonly ends: WebGLBuffer;
  private readonly colors: WebGLBuffer;
  private readonly paces: WebGLBuffer;
  private readonly still: WebGLTexture;
  private readonly stillProgram: Program;
  private stillSize: [number, number] = [0, 0];
  private count = 0;

  constructor(private readonly gl: WebGL2RenderingContext) {
    this.program = linkProgram(gl, PARTICLE_VERTEX, PARTICLE_FRAGMENT);
    [this.ends, this.colors, this.paces] = [gl.createBuffer(), gl.createBuffer(), gl.createBuffer()];
    this.still = makeTexture(gl);
    this.stillProgram = linkProgram(gl, WHOLE_VERTEX, STILL_FRAGMENT);
    this.array = gl.createVertexArray();
    gl.bindVertexArray(this.array);
    for (const location of [0, 1, 2]) {
      gl.enableVertexAttribArray(location);
    }
    gl.bindBuffer(gl.ARRAY_BUFFER, this.ends);
    gl.vertexAttribIPointer(0, 2, gl.UNSIGNED_INT, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.colors);
    gl.vertexAttribPointer(1, 4, gl.UNSIGNED_BYTE, true, 0, 0);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.paces);
    gl.vertexAttribPointer(2, 2, gl.FLOAT, false, 0, 0);
    gl.bindVertexArray(null);
  }

  set({ count, ends, colors, phases, speeds }: Particles): void {
    const { gl } = this;
    this.count = count;
    const paces = new Float32Array(2 * count);
    for (let i = 0; i < count; i++) {
      paces[2 * i] = phases[i];
      paces[2 * i + 1] = speeds[i];
    }
    fill(gl, this.ends, ends);
    fill(gl, this.colors, colors);
    fill(gl, this.paces, paces);
  }

  /** Keep what the canvas shows, just after it was drawn. */
  keepStill(): void {
    const { gl } = this;
    const [width, height] = [gl.drawingBufferWidth, gl.drawingBufferHeight];
    gl.bindTexture(gl.TEXTURE_2D, this.still);
    if (width !== this.stillSize[0] || height !== this.stillSize[1]) {
      this.stillSize = [width, height];
      gl.texImage2D(gl.TEXTURE_2D, 0, gl.RGBA8, width, height, 0, gl.RGBA, gl.UNSIGNED_BYTE, null);
    }
    gl.bindFramebuffer(gl.FRAMEBUFFER, null);
    gl.copyTexSubImage2D(gl.TEXTURE_2D, 0, 0, 0, 0, 0, width, height);
  }

  /** What was kept, on the canvas again. */
  showStill(): void {
    // Drawn, for some drivers copy black out of a texture into which nothing was drawn.
    const { gl, stillProgram } = this;
    gl.useProgram(stillProgram.program);
    gl.activeTexture(gl.TEXTURE0);
    gl.bindTexture(gl.TEXTURE_2D, this.still);
    gl.uniform1i(stillProgram.at("still"), 0);
    gl.disable(gl.DEPTH_TEST);
    gl.disable(gl.BLEND);
    gl.bindVertexArray(null);
    gl.drawArrays(gl.TRIANGLES, 0, 3);
  }

  /** The particles, with the program as it was set up for where they are seen from. */
  draw(seconds: number, isDark: boolean): void {
    const { gl, program } = this;
    gl.uniform1f(program.at("seconds"), seconds);
    gl.uniform1f(program.at("isDark"), isDark ? 1 : 0);
    gl.disable(gl.DEPTH_TEST);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    gl.bindVertexArray(this.array);
    gl.drawArrays(gl.POINTS, 0, this.count);
    gl.bindVertexArray(null);
  }

  dispose(): void {
    const { gl } = this;
    gl.deleteVertexArray(this.array);
    for (const buffer of [this.ends, this.colors, this.paces]) {
      gl.deleteBuffer(buffer);
    }
    gl.deleteTexture(this.still);
    gl.deleteProgram(this.program.program);
    gl.deleteProgram(this.stillProgram.program);
  }
}
