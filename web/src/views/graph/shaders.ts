// The programs that the graphics processor runs. Nodes are named by numbers; their places and colours lie in textures, so
// that an edge needs no more than the numbers of its ends, and places change without a new list of edges.
import { GROWTH, WIDTH_GAIN } from "../../model/graph/count-effect.ts";
import { CHOSEN_GROWTH, LEAST_FRONT_PX } from "./node-sizes.ts";

const PLACES = `#version 300 es
precision highp float;
precision highp int;
precision highp sampler2D;
// x, y, z and the size of each node, as it was and as it will be, and how far between.
uniform sampler2D fromPlaces;
uniform sampler2D toPlaces;
uniform float between;
uniform mat4 matrix;
uniform vec2 viewport;

const int WIDTH_BITS = 10;

ivec2 cellOf(uint node) {
  return ivec2(int(node) & ((1 << WIDTH_BITS) - 1), int(node) >> WIDTH_BITS);
}

vec4 placeOf(uint node) {
  ivec2 cell = cellOf(node);
  vec4 to = texelFetch(toPlaces, cell, 0);
  return between >= 1.0 ? to : mix(texelFetch(fromPlaces, cell, 0), to, between);
}

uniform sampler2D colors;
// How hot each node is, 0 to 1, and how strongly that changes its size (model/graph/count-effect.ts).
uniform sampler2D heats;
uniform float countEffect;
uniform uint nBlocks;
uniform float pixels;
// Pixels of the screen by those that lengths are told in.
uniform float ratio;
// Diameters in pixels: least and most of blocks, least and most of functions.
uniform vec4 sizes;
// What is selected, which is drawn larger, and what is under the pointer: both are drawn in front of the others.
uniform uint chosen;
uniform uint pointed;

// The diameter of a node in pixels of the screen, at a depth.
float sizeOf(uint node, float world, float strength, float depth, bool isFront) {
  float heat = texelFetch(heats, cellOf(node), 0).r;
  float growth = 1.0 + countEffect * (${(GROWTH.most + GROWTH.least).toFixed(3)} * heat - ${GROWTH.least.toFixed(3)});
  vec2 bounds = (node < nBlocks ? sizes.xy : sizes.zw) * max(vec2(growth, growth), vec2(1.0, 0.0));
  float least = max(bounds.x * (0.4 + 0.6 * strength), isFront ? ${LEAST_FRONT_PX.toFixed(1)} : 0.0);
  float wanted = world * growth * (strength < 0.3 ? 0.5 : 1.0) * pixels / max(depth, 1e-9);
  float larger = node == chosen ? ${CHOSEN_GROWTH.toFixed(2)} : 1.0;
  return larger * ratio * clamp(wanted, least, max(bounds.y, least));
}
`;

/** Nodes as points: a disc each, at least as large as the eye can see. */
export const NODE_VERTEX = `${PLACES}
layout(location = 0) in uint node;
uniform float isFront;
out vec4 color;
out float size;

void main() {
  vec4 place = placeOf(node);
  color = texelFetch(colors, cellOf(node), 0);
  gl_Position = matrix * vec4(place.xyz, 1.0);
  size = sizeOf(node, place.w, color.a, gl_Position.w, isFront > 0.5);
  gl_PointSize = color.a == 0.0 ? 0.0 : size + 1.0;
}
`;

export const NODE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 color;
in float size;
uniform vec3 rim;
uniform float rimShare;
// How strong nodes are drawn, 0 to 1.
uniform float opacity;
out vec4 pixel;

void main() {
  float away = length(gl_PointCoord * 2.0 - 1.0) * (size + 1.0) / 2.0;
  float cover = clamp(size / 2.0 + 0.5 - away, 0.0, 1.0);
  if (cover <= 0.0) {
    discard;
  }
  // A rim sets discs that cover one another apart; small ones have no room for it.
  float isRim = size > 5.0 ? clamp(away - (size / 2.0 - 1.4), 0.0, 1.0) : 0.0;
  float strength = opacity * (color.a < 0.3 ? 0.6 : color.a < 0.5 ? 0.5 : 1.0);
  pixel = vec4(mix(color.rgb, mix(color.rgb, rim, rimShare), isRim), 1.0) * cover * strength;
}
`;

/** The way of an edge on the screen, for ribbons and for what moves along them. `setEnds` comes before `wayAt`. */
const WAY = `
// How much curves follow the surface of a cylinder around the y axis, 0 to 1, and its radius.
uniform float surface;
uniform float cylinder;
// How deep the middle of the picture is, and half of how deep it reaches.
uniform vec2 depths;

const float PI = 3.14159265;

vec3 source;
vec3 target;
// Angle, radius and height of the source, and how much of each it is to the target.
vec3 around;
vec3 turn;
vec4 first;
vec4 last;
// From end to end on the screen: how far, and how far the middle is aside of a straight line.
float span;
float bend;
vec2 left;
bool isLoop;
float least;

vec3 curve(float t) {
  vec3 straight = mix(source, target, t);
  if (surface <= 0.0) {
    return straight;
  }
  float hill = sin(PI * t);
  float angle = around.x + turn.x * t + hill * 0.05 * clamp(abs(turn.z) / max(cylinder, 1e-6), 0.0, 1.5);
  float out_ = around.y + turn.y * t + hill * cylinder * 0.05 * (abs(turn.x) / PI);
  vec3 bent = vec3(out_ * sin(angle), around.z + turn.z * t, out_ * cos(angle));
  return mix(straight, bent, surface);
}

void setEnds(uvec2 ends) {
  vec4 from = placeOf(ends.x);
  source = from.xyz;
  target = placeOf(ends.y).xyz;
  isLoop = ends.x == ends.y;
  least = 1e-3 * depths.x;
  first = matrix * vec4(source, 1.0);
  last = matrix * vec4(target, 1.0);
  if (isLoop) {
    bool isFront = ends.x == chosen || ends.x == pointed;
    // As wide as the node; its radius and how far away its middle is (self-loop.ts).
    float diameter = sizeOf(ends.x, from.w, texelFetch(colors, cellOf(ends.x), 0).a, first.w, isFront);
    span = clamp(0.5 * diameter, 4.0 * ratio, 40.0 * ratio);
    bend = 0.3 * diameter + span;
    left = vec2(0.6, 0.8);
    return;
  }
  if (surface > 0.0) {
    vec2 polarA = vec2(atan(source.x, source.z), length(source.xz));
    vec2 polarB = vec2(atan(target.x, target.z), length(target.xz));
    float way = polarB.x - polarA.x;
    way -= 2.0 * PI * floor((way + PI) / (2.0 * PI));
    around = vec3(polarA, source.y);
    turn = vec3(way, polarB.y - polarA.y, target.y - source.y);
  }
  float far = first.w > least && last.w > least ? 1.0 : 0.0;
  vec2 chord = far > 0.0 ? (last.xy / last.w - first.xy / first.w) * viewport * 0.5 : viewport;
  span = length(chord);
  // Bent to the left of its way: so both directions between two nodes are seen.
  bend = far * (1.0 - surface) * min(span * 0.1, 40.0);
  left = span > 1e-3 ? vec2(-chord.y, chord.x) / span : vec2(0.0);
}

vec4 wayAt(float t) {
  if (isLoop) {
    float angle = 2.0 * PI * t;
    vec2 back = -left * cos(angle) - vec2(-left.y, left.x) * sin(angle);
    vec4 here = first;
    here.xy += (left * bend + back * span) * 2.0 / viewport * here.w;
    return here;
  }
  vec4 here = matrix * vec4(curve(t), 1.0);
  here.xy += left * bend * 4.0 * t * (1.0 - t) * 2.0 / viewport * here.w;
  return here;
}
`;

/** Edges as ribbons along a curve between both ends: on a cylinder along its surface, else slightly bent. */
export const EDGE_VERTEX = `${PLACES}
layout(location = 0) in uvec2 ends;
layout(location = 1) in vec4 tint;
layout(location = 2) in float heat;
uniform float segments;
uniform float width;
uniform float opacity;
uniform float isDark;
// Edges that stand out: as they are, whatever their length.
uniform float isMarked;
out vec4 color;
out float side;
out float halfWidth;
${WAY}
void main() {
  setEnds(ends);
  float t = float(gl_VertexID >> 1) / segments;
  float ahead = t < 0.5 ? 0.5 / segments : -0.5 / segments;
  vec4 here = wayAt(t);
  vec4 next = wayAt(t + ahead);
  vec2 along = (next.xy / max(next.w, least) - here.xy / max(here.w, least)) * viewport * sign(ahead);
  vec2 across = length(along) > 1e-5 ? normalize(vec2(-along.y, along.x)) : vec2(0.0, 1.0);
  // Wider by the logarithm of its count.
  halfWidth = 0.5 * width * (1.0 + ${WIDTH_GAIN.toFixed(2)} * countEffect * heat);
  side = (float(gl_VertexID & 1) * 2.0 - 1.0) * (halfWidth + 0.5);
  here.xy += across * side * 2.0 / viewport * here.w;
  gl_Position = here;
  // Long edges would cover all the others: the longer the fainter, and faintest in their middle; busy ones less so.
  float length_ = span / ratio;
  float shorter = clamp(pow(70.0 / max(length_, 1.0), mix(0.6, 0.25, tint.a)), 0.0, 1.0);
  float middle = 1.0 - mix(0.55, 0.2, tint.a) * smoothstep(60.0, 500.0, length_) * sin(PI * t);
  float behind = clamp((here.w - depths.x) / max(2.0 * depths.y, 1e-6) + 0.5, 0.0, 1.0);
  // Between neighbours there is room for little more than a stroke, which so may be strong.
  float weight = tint.a * mix(3.0, 1.0, smoothstep(15.0, 90.0, length_));
  float strength = isMarked > 0.5
    ? opacity * mix(0.22, 1.0, t * t)
    : opacity * weight * shorter * middle * mix(1.0, 0.3, behind);
  // In front of a light ground pale colours vanish: they are made darker.
  float light = dot(tint.rgb, vec3(0.3, 0.59, 0.11));
  vec3 shown = isDark > 0.5 ? tint.rgb : tint.rgb * min(1.0, 0.5 / max(light, 1e-3));
  color = vec4(shown, clamp(strength, 0.0, 1.0));
}
`;

export const EDGE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 color;
in float side;
in float halfWidth;
out vec4 pixel;

void main() {
  float cover = clamp(halfWidth + 0.5 - abs(side), 0.0, 1.0) * color.a;
  pixel = vec4(color.rgb * cover, cover);
}
`;

/** Particles on their ways along edges: points, each with a rim of the ground. */
export const PARTICLE_VERTEX = `${PLACES}
layout(location = 0) in uvec2 ends;
layout(location = 1) in vec4 tint;
// Where it begins on its way, and how many ways it makes in a second.
layout(location = 2) in vec2 pace;
uniform float seconds;
uniform float isDark;
out vec4 color;
${WAY}
void main() {
  setEnds(ends);
  gl_Position = wayAt(fract(pace.x + pace.y * seconds));
  gl_PointSize = 8.0 * ratio;
  color = vec4(isDark > 0.5 ? mix(tint.rgb, vec3(1.0), 0.5) : tint.rgb * 0.6, 1.0);
}
`;

export const PARTICLE_FRAGMENT = `#version 300 es
precision highp float;
in vec4 color;
uniform float isDark;
out vec4 pixel;

void main() {
  float away = length(gl_PointCoord * 2.0 - 1.0);
  float cover = clamp((1.0 - away) * 4.0, 0.0, 1.0);
  vec3 rim = isDark > 0.5 ? vec3(0.0) : vec3(1.0);
  pixel = vec4(mix(color.rgb, rim, smoothstep(0.45, 0.75, away)), 1.0) * cover;
}
`;

/** One triangle over all of the picture. */
export const WHOLE_VERTEX = `#version 300 es
void main() {
  gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0, gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);
}
`;

/** What is there is multiplied with `share`, by how it is blended. */
export const FADE_FRAGMENT = `#version 300 es
precision highp float;
uniform float share;
out vec4 pixel;

void main() {
  pixel = vec4(0.0, 0.0, 0.0, share);
}
`;

/** A picture of the same size as it is. */
export const STILL_FRAGMENT = `#version 300 es
precision highp float;
uniform sampler2D still;
out vec4 pixel;

void main() {
  pixel = texelFetch(still, ivec2(gl_FragCoord.xy), 0);
}
`;
