// Who did what with what: a picture of processes and entities with a line for each pair, and the same as a table.
import { formatBytes, formatInteger } from "../../base/format.ts";
import { showEntity, touches } from "../../model/calls/calls.ts";
import { processName } from "../../model/calls/call-processes.ts";
import { touchGraph } from "../../model/calls/shown-touches.ts";
import { TOUCH_PLACES, type TouchNode, touchPath } from "../../model/calls/touch-graph.ts";
import { showProcess } from "../../model/session.ts";
import { calls } from "../../model/view-state.ts";

export function TouchesPanel() {
  const found = touches.value;
  const graph = touchGraph.value;
  if (!found || !graph) {
    return <p class="waiting">Reading who did what …</p>;
  }
  if (found.rows.length === 0) {
    return (
      <p class="waiting">
        This trace has no API calls, which alone tell of files and sockets: clew api --trace OUT.clew -- COMMAND records
        them.
      </p>
    );
  }
  const { width: widest, left, right, gap } = TOUCH_PLACES;
  return (
    <div class="touches" tabIndex={0} role="region" aria-label="Who did what with what">
      <svg width={widest} height={graph.height} aria-hidden="true" data-touch-lines={graph.lines.length}>
        {graph.lines.map((line) => (
          <path
            key={`${line.from.id} ${line.to.id}`}
            class={line.to.id === calls.value.entity ? "chosen" : ""}
            d={touchPath(line)}
            stroke-width={line.width}
          />
        ))}
        {graph.processes.map((node) => (
          <Name key={node.id} node={node} x={left - gap} anchor="end" onClick={() => showProcess(node.id)} />
        ))}
        {graph.entities.map((node) => (
          <Name
            key={node.id}
            node={node}
            x={right + gap}
            anchor="start"
            onClick={() => showEntity({ entity: node.id, tid: null, process: null })}
          />
        ))}
      </svg>
      {graph.omitted > 0 && <p class="quiet">{formatInteger(graph.omitted)} pairs are in the table alone.</p>}
      <table data-touch-table>
        <caption>
          {formatInteger(found.total)} pairs of a process and an entity
          {found.total > found.rows.length && `, the ${formatInteger(found.rows.length)} with the most calls`}
        </caption>
        <thead>
          <tr>
            <th scope="col">Process</th>
            <th scope="col">Entity</th>
            <th scope="col">Kind</th>
            <th scope="col">Calls</th>
            <th scope="col">What</th>
            <th scope="col">Read</th>
            <th scope="col">Written</th>
          </tr>
        </thead>
        <tbody>
          {found.rows.map((row) => (
            <tr key={`${row.process} ${row.entity}`}>
              <td>
                <bdi>{processName.value(row.process)}</bdi>
              </td>
              <td>
                <button
                  type="button"
                  class="plain"
                  onClick={() => showEntity({ entity: row.entity, tid: null, process: null })}
                >
                  <bdi>{row.name}</bdi>
                </button>
              </td>
              <td>{row.kind}</td>
              <td class="number">{formatInteger(row.calls)}</td>
              <td>{row.roles.map(([role, n]) => `${role} ${formatInteger(n)}`).join(", ")}</td>
              <td class="number">{formatBytes(row.bytes_read)}</td>
              <td class="number">{formatBytes(row.bytes_written)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function Name(properties: { node: TouchNode; x: number; anchor: "start" | "end"; onClick: () => void }) {
  const { node, x, anchor, onClick } = properties;
  return (
    <text x={x} y={node.y} text-anchor={anchor} dominant-baseline="central" onClick={onClick}>
      {node.label}
    </text>
  );
}
