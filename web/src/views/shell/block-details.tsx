// The selected block in words: what it is, how often it ran, its code, what leads to it and where it leads.
import { useEffect, useMemo } from "preact/hooks";
import { formatAddress, formatDuration, formatInteger, formatShare } from "../../base/format.ts";
import { followSelectedCode, selectedCode } from "../../model/selected-code.ts";
import { functionOfBlock, selectedBlock, selectedFunction } from "../../model/selected.ts";
import { blocks, counts, functions, isCounted } from "../../model/session.ts";
import { update } from "../../model/view-state.ts";
import { EDGE_KIND, EXIT_KIND } from "../../protocol/generated.ts";
import { InstructionTokens } from "../listing/instruction-tokens.tsx";

const MOST_EDGES = 12;

const EXIT_WORDS: Record<keyof typeof EXIT_KIND, string> = {
  fall_through: "goes on into the next block",
  jump: "ends with a jump",
  conditional: "ends with a conditional jump",
  call: "ends with a call",
  indirect_jump: "ends with a jump to a computed address",
  indirect_call: "ends with a call of a computed address",
  return: "ends with a return",
  syscall: "ends with a system call",
  none: "ends where nothing could follow",
};

export function BlockDetails() {
  const index = selectedBlock.value;
  const loaded = blocks.value;
  const executed = counts.value;
  const ways = useMemo(() => countWays(index), [index, loaded, executed]);
  if (index < 0 || !loaded) {
    return null;
  }
  const executions = executed?.blockExecutions?.[index] ?? 0;
  const kind = loaded.exitKind[index];
  const word = (Object.keys(EXIT_KIND) as (keyof typeof EXIT_KIND)[]).find((name) => EXIT_KIND[name] === kind);
  return (
    <>
      <h3>Block</h3>
      <dl class="facts">
        <dt>Id</dt>
        <dd data-fact="block-id">{loaded.blockId[index - loaded.firstBlock]}</dd>
        <dt>Address</dt>
        <dd>
          <code>{formatAddress(loaded.address[index])}</code>
        </dd>
        {isCounted.value && (
          <>
            <dt>Executions</dt>
            <dd data-fact="executions">
              {loaded.isRecorded[index] ? formatInteger(executions) : "left out: not counted"}
            </dd>
          </>
        )}
        <dt>Instructions</dt>
        <dd>
          {formatInteger(loaded.nInstructions[index])}{" "}
          <span class="quiet">{formatInteger(loaded.sizeBytes[index])} bytes</span>
        </dd>
        <dt>First</dt>
        <dd>{formatDuration(loaded.first[index])} after the start</dd>
        <dt>End</dt>
        <dd>{word ? EXIT_WORDS[word] : "not known"}</dd>
        {kind === EXIT_KIND.conditional && <Ways {...ways} />}
        {loaded.codeVersion[index] > 0 && (
          <>
            <dt>Version</dt>
            <dd>{formatInteger(loaded.codeVersion[index])}: the code was changed while it ran</dd>
          </>
        )}
      </dl>
      <BlockCode index={index} />
      <BlockEdges index={index} isOut={false} />
      <BlockEdges index={index} isOut={true} />
    </>
  );
}

/** How its conditional jump went: how often, or whether at all. */
function Ways({ taken, notTaken }: { taken: number; notTaken: number }) {
  if (!isCounted.value) {
    return (
      <>
        <dt>Taken</dt>
        <dd data-fact="taken">{taken > 0 ? "yes" : "never"}</dd>
        <dt>Not taken</dt>
        <dd data-fact="not-taken">{notTaken > 0 ? "yes" : "never"}</dd>
      </>
    );
  }
  return (
    <>
      <dt>Taken</dt>
      <dd data-fact="taken">
        {formatInteger(taken)} <span class="quiet">{formatShare(taken, taken + notTaken)}</span>
      </dd>
      <dt>Not taken</dt>
      <dd data-fact="not-taken">
        {formatInteger(notTaken)} <span class="quiet">{formatShare(notTaken, taken + notTaken)}</span>
      </dd>
      <dt aria-hidden="true" />
      <dd class="ways" aria-hidden="true">
        <span class="taken" style={{ flexGrow: taken }} />
        <span class="not-taken" style={{ flexGrow: notTaken }} />
      </dd>
    </>
  );
}

/** What the processor executes in it. */
function BlockCode({ index }: { index: number }) {
  const found = selectedCode.value;
  useEffect(followSelectedCode, []);
  return (
    <>
      <h3>Code</h3>
      {found?.block !== index ? (
        <p class="quiet">…</p>
      ) : found.code ? (
        <ol class="block-code" aria-label="Code of the block" tabIndex={0}>
          {found.code.instructions.map((one) => (
            <li key={one.address} title={`${one.address}: ${one.bytes}`}>
              <InstructionTokens of={one} />
            </li>
          ))}
        </ol>
      ) : (
        <p class="quiet">{found.failure ?? "The function is too large to be told whole: see the listing."}</p>
      )}
    </>
  );
}

/** Where the block leads, or what leads to it, the busiest first: what pointing at it in the graph shows. */
function BlockEdges({ index, isOut }: { index: number; isOut: boolean }) {
  const loaded = blocks.value;
  const executions = counts.value?.edgeExecutions;
  const found = useMemo(() => {
    const rows: { other: number; n: number }[] = [];
    const [own, other] = loaded
      ? isOut
        ? [loaded.edgeSource, loaded.edgeTarget]
        : [loaded.edgeTarget, loaded.edgeSource]
      : [[], []];
    for (let edge = 0; edge < own.length; edge++) {
      if (own[edge] === index && other[edge] >= 0) {
        rows.push({ other: other[edge], n: executions?.[loaded!.edgeIndex[edge]] ?? 0 });
      }
    }
    return rows.sort((a, b) => b.n - a.n || a.other - b.other);
  }, [index, isOut, loaded, executions]);
  if (!loaded || found.length === 0) {
    return null;
  }
  const title = isOut ? "Block leads to" : "Block is reached from";
  return (
    <>
      <h3>{title}</h3>
      <ul class="links" aria-label={title}>
        {found.slice(0, MOST_EDGES).map(({ other, n }, at) => (
          <li key={at}>
            <button type="button" onClick={() => update({ selection: { kind: "block", index: other } })}>
              <span class="name">{other === index ? "itself" : nameOfBlock(other)}</span>
              {isCounted.value && <span class="count">{formatInteger(n)}</span>}
            </button>
          </li>
        ))}
        {found.length > MOST_EDGES && <li class="quiet">and {formatInteger(found.length - MOST_EDGES)} more</li>}
      </ul>
    </>
  );
}

function nameOfBlock(block: number): string {
  const of = functions.value!;
  const index = functionOfBlock(of.firstBlock, block);
  const address = formatAddress(blocks.value!.address[block]);
  return index === selectedFunction.value ? address : `${of.names[index]} ${address}`;
}

/** How often the jump at the end of a block was taken, and how often not. */
function countWays(block: number): { taken: number; notTaken: number } {
  const loaded = blocks.value;
  const executions = counts.value?.edgeExecutions;
  const ways = { taken: 0, notTaken: 0 };
  if (block < 0 || !loaded || !executions) {
    return ways;
  }
  for (let edge = 0; edge < loaded.edgeSource.length; edge++) {
    if (loaded.edgeSource[edge] === block) {
      const n = executions[loaded.edgeIndex[edge]];
      ways.taken += loaded.edgeKind[edge] === EDGE_KIND.taken ? n : 0;
      ways.notTaken += loaded.edgeKind[edge] === EDGE_KIND.not_taken ? n : 0;
    }
  }
  return ways;
}
