// Level lines between two layers: which of them runs above which, so that few lines cross and none lies upon another.

/** What one bundle connects between two layers: places on the upper layer's side and on the lower one's. */
export interface Net {
  tops: number[];
  bottoms: number[];
}

/** Nets closer than this share no track. */
const CLEARANCE = 8;
/** Upright lines closer than this lie upon each other. */
const TOO_CLOSE = 5;
const OVERLAY_COST = 20;
/** With more nets than so many between two layers their order is a rule of thumb. */
const MOST_COMPARED = 260;
const STRAIGHT = 0.5;

/** The track of each net, 0 the uppermost; -1 for one that is a single upright line. And how many tracks there are. */
export function assignTracks(nets: readonly Net[]): { track: Int32Array; nTracks: number } {
  const track = new Int32Array(nets.length).fill(-1);
  const low = nets.map((net) => Math.min(...net.tops, ...net.bottoms));
  const high = nets.map((net) => Math.max(...net.tops, ...net.bottoms));
  const bent = nets.map((_, i) => i).filter((i) => high[i] - low[i] > STRAIGHT);
  const meets = (a: number, b: number) => low[a] < high[b] + CLEARANCE && low[b] < high[a] + CLEARANCE;
  const order = bent.length <= MOST_COMPARED ? compareAll(nets, bent, low, high, meets) : sortBySides(nets, bent);
  let nTracks = 0;
  order.forEach((net, at) => {
    let free = 0;
    for (let before = 0; before < at; before++) {
      if (track[order[before]] >= free && meets(net, order[before])) {
        free = track[order[before]] + 1;
      }
    }
    track[net] = free;
    nTracks = Math.max(nTracks, free + 1);
  });
  return { track, nTracks };
}

/** From the top: always the net that costs the fewest crossings when it runs above all that are left. */
function compareAll(
  nets: readonly Net[],
  bent: number[],
  low: number[],
  high: number[],
  meets: (a: number, b: number) => boolean,
): number[] {
  const k = bent.length;
  const cost = new Float64Array(k * k);
  const total = new Float64Array(k);
  const above = (a: number, b: number) => {
    const inside = (x: number, net: number) => x > low[net] && x < high[net];
    let found = 0;
    for (const x of nets[a].bottoms) {
      found += Number(inside(x, b));
      for (const y of nets[b].tops) {
        found += Math.abs(x - y) < TOO_CLOSE ? OVERLAY_COST : 0;
      }
    }
    for (const y of nets[b].tops) {
      found += Number(inside(y, a));
    }
    return found;
  };
  for (let i = 0; i < k; i++) {
    for (let j = i + 1; j < k; j++) {
      if (meets(bent[i], bent[j])) {
        const difference = above(bent[i], bent[j]) - above(bent[j], bent[i]);
        cost[i * k + j] = difference;
        cost[j * k + i] = -difference;
        total[i] += difference;
        total[j] -= difference;
      }
    }
  }
  const left = bent.map((_, i) => i);
  const order: number[] = [];
  while (left.length > 0) {
    let best = 0;
    for (let i = 1; i < left.length; i++) {
      if (total[left[i]] < total[left[best]]) {
        best = i;
      }
    }
    const [chosen] = left.splice(best, 1);
    order.push(bent[chosen]);
    for (const other of left) {
      total[other] -= cost[other * k + chosen];
    }
  }
  return order;
}

/** Of lines that go right the rightmost above, of those that go left the leftmost. */
function sortBySides(nets: readonly Net[], bent: number[]): number[] {
  const mean = (places: number[]) => places.reduce((sum, x) => sum + x, 0) / Math.max(places.length, 1);
  const from = nets.map((net) => mean(net.tops));
  const isRight = nets.map((net, i) => mean(net.bottoms) >= from[i]);
  return bent.slice().sort((a, b) => {
    if (isRight[a] !== isRight[b]) {
      return isRight[a] ? -1 : 1;
    }
    return (isRight[a] ? from[b] - from[a] : from[a] - from[b]) || a - b;
  });
}
