// Captions at the other ends of the edges at what is selected: who leads to it, and where it leads. Pure.
import { formatAddress } from "../../base/format.ts";
import type { DrawnGraph } from "../../model/graph/folding.ts";
import type { Neighbour } from "./marked-edges.ts";

/** More would cover what they name: then the busiest have one. */
export const MOST_CAPTIONS = 12;

export interface Caption {
  node: number;
  drawn: number;
  isOut: boolean;
  text: string;
}

/** Captions of the busiest neighbours, the busiest first. */
export function captionsOf(
  graph: DrawnGraph,
  neighbours: readonly Neighbour[],
  executionsOf: (drawn: number) => number,
  shorten: (name: string) => string,
): Caption[] {
  return neighbours
    .map((one) => ({ ...one, executions: executionsOf(one.drawn) }))
    .sort((a, b) => b.executions - a.executions || a.node - b.node)
    .slice(0, MOST_CAPTIONS)
    .map(({ node, drawn, isOut, isOwn }) => {
      const address = isOwn ? graph.blocks?.address[graph.blockOf[node]] : undefined;
      const name =
        address === undefined ? shorten(graph.functions.names[graph.functionOf[drawn]]) : formatAddress(address);
      return { node, drawn, isOut, text: isOut ? `→ ${name}` : `${name} →` };
    });
}
