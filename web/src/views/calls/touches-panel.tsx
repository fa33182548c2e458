// Who did what with what: a picture of processes and entities with a line for each pair, and the same as a table.
import { useMemo } from "preact/hooks";
import { formatBytes, formatInteger } from "../../base/format.ts";
import { showEntity, touches } from "../../model/calls/calls.ts";
import { layoutTouches, type TouchNode } from "../../model/calls/touch-graph.ts";
import { showProcess, summary } from "../../model/session.ts";
import { calls } from "../../model/view-state.ts";

const MOST_NODES = 14;
const WIDTH = 640;
const LEFT = 170;
const RIGHT = 400;

export function TouchesPanel() {
  const found = touches.value;
  const trace = summary.value;
  const nameOf = (process: number) => {
    const known = trace?.processes.find((one) => one.process_id === process);
    return known ? `${known.pid} ${known.command[0] ?? ""}` : `process ${process}`;
  };
  const graph = useMemo(() => layoutTouches(found?.rows ?? [], nameOf, MOST_NODES), [found, trace]);
  if (!found) {
    return <p class="waiting">Reading who did what …</p>;
  }
  if (found.rows.length === 0) {
    return <p class="waiting">This trace has no API calls, which alone tell of files and sockets.</p>;
  }
  return (
    <div class="touches" tabIndex={0} role="region" aria-label="Who did what with what">
      <svg width={WIDTH} height={graph.height} aria-hidden="true" data-touch-lines={graph.lines.length}>
        {graph.lines.map(({ from, to, touch, width }) => (
          <path
            key={`${touch.process} ${touch.entity}`}
            class={touch.entity === calls.value.entity ? "chosen" : ""}
            d={`M${LEFT} ${from.y}C${(LEFT + RIGHT) / 2} ${from.y} ${(LEFT + RIGHT) / 2} ${to.y} ${RIGHT} ${to.y}`}
            stroke-width={width}
          />
        ))}
        {graph.processes.map((node) => (
          <Name key={node.id} node={node} x={LEFT - 6} anchor="end" most={26} onClick={() => showProcess(node.id)} />
        ))}
        {graph.entities.map((node) => (
          <Name
            key={node.id}
            node={node}
            x={RIGHT + 6}
            anchor="start"
            most={36}
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
                <bdi>{nameOf(row.process)}</bdi>
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

function Name(properties: { node: TouchNode; x: number; anchor: "start" | "end"; most: number; onClick: () => void }) {
  const { node, x, anchor, most, onClick } = properties;
  const name = node.name.length > most ? `${node.name.slice(0, most)}…` : node.name;
  return (
    <text x={x} y={node.y} text-anchor={anchor} dominant-baseline="central" onClick={onClick}>
      {name}
    </text>
  );
}
