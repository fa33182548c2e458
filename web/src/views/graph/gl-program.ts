// A program of WebGL2 with the places of its uniforms.

export interface Program {
  program: WebGLProgram;
  /** Where a uniform is; null for one that the program does not use. */
  at: (name: string) => WebGLUniformLocation | null;
}

/** Throws an Error with the compiler's words. */
export function linkProgram(gl: WebGL2RenderingContext, vertex: string, fragment: string): Program {
  const program = gl.createProgram();
  const shaders = [compile(gl, gl.VERTEX_SHADER, vertex), compile(gl, gl.FRAGMENT_SHADER, fragment)];
  for (const shader of shaders) {
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  // Asked of the program alone: each question waits for the graphics process.
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost()) {
    const said = shaders.map((shader) => gl.getShaderInfoLog(shader) ?? "").join("");
    throw new Error(`a program of WebGL2 does not link: ${gl.getProgramInfoLog(program)} ${said}`);
  }
  for (const shader of shaders) {
    gl.deleteShader(shader);
  }
  const places = new Map<string, WebGLUniformLocation | null>();
  return {
    program,
    at: (name) => {
      let place = places.get(name);
      if (place === undefined) {
        place = gl.getUniformLocation(program, name);
        places.set(name, place);
      }
      return place;
    },
  };
}

function compile(gl: WebGL2RenderingContext, kind: number, text: string): WebGLShader {
  const shader = gl.createShader(kind)!;
  gl.shaderSource(shader, text);
  gl.compileShader(shader);
  return shader;
}
