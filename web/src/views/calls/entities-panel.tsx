// What calls are about, by kind: processes, threads, files, sockets. One that is chosen lists its calls.
import type { EntityRow, OpenedEntity, Touch } from "../../api/calls.ts";
import { formatDuration, formatInteger } from "../../base/format.ts";
import { isOfAll, processName } from "../../model/calls/call-processes.ts";
import { formatCallTime } from "../../model/calls/call-text.ts";
import { headingOf, listEntities, sortKinds } from "../../model/calls/entity-rows.ts";
import {
  chosenEntity,
  entityKind,
  entityPage,
  entityText,
  goToCall,
  showEntity,
  showsAllEntities,
} from "../../model/calls/calls.ts";
import { processId, showProcess, summary } from "../../model/session.ts";
import { calls, threads } from "../../model/view-state.ts";
import { VirtualList } from "../shell/virtual-list.tsx";

const ROW_HEIGHT = 22;
const MOST_SHARING = 12;

export function EntitiesPanel() {
  const page = entityPage.value;
  const rows = page ? listEntities(page) : [];
  const current = rows.findIndex((row) => "entity" in row && isChosen(row.entity));
  const all = page ? Object.values(page.kinds).reduce((sum, n) => sum + n, 0) : 0;
  return (
    <section class="entities" aria-label="Entities">
      <input
        type="search"
        placeholder="Search entities"
        aria-label="Search entities"
        value={entityText.value}
        onInput={(event) => (entityText.value = event.currentTarget.value)}
      />
      <div class="entity-kinds" role="group" aria-label="Kinds of entities">
        <button type="button" aria-pressed={entityKind.value === null} onClick={() => (entityKind.value = null)}>
          All {formatInteger(all)}
        </button>
        {page &&
          sortKinds(Object.keys(page.kinds)).map((kind) => (
            <button
              key={kind}
              type="button"
              aria-pressed={entityKind.value === kind}
              onClick={() => (entityKind.value = entityKind.peek() === kind ? null : kind)}
            >
              {headingOf(kind)} {formatInteger(page.kinds[kind])}
            </button>
          ))}
      </div>
      {!isOfAll.value && (
        <label class="entity-all">
          <input
            type="checkbox"
            checked={showsAllEntities.value}
            onChange={(event) => (showsAllEntities.value = event.currentTarget.checked)}
          />{" "}
          Also of other processes
        </label>
      )}
      {!page ? (
        <p class="waiting">Looking for entities …</p>
      ) : (
        <VirtualList
          count={rows.length}
          rowHeight={ROW_HEIGHT}
          label="Entities"
          current={current}
          onMove={(index) => {
            const row = rows[index];
            if ("entity" in row) {
              showEntity(row.entity);
            } else {
              // On a heading the way leads on to what is below it, or above.
              const next = rows[index < current ? index - 1 : index + 1] as (typeof rows)[number] | undefined;
              if (next && "entity" in next) {
                showEntity(next.entity);
              }
            }
          }}
          row={(index) => {
            const row = rows[index];
            return "entity" in row ? (
              <Entity row={row.entity} />
            ) : (
              <span class="heading">
                {row.heading} <span class="quiet">{formatInteger(row.count)}</span>
              </span>
            );
          }}
        />
      )}
      {page && page.total > page.rows.length && (
        <p class="quiet entity-more">and {formatInteger(page.total - page.rows.length)} more: search for them</p>
      )}
      {page?.source === "known" && (
        <p class="quiet entity-more">Files and sockets are in traces of clew api --trace.</p>
      )}
      <ChosenEntity />
    </section>
  );
}

function Entity({ row }: { row: EntityRow }) {
  return (
    <span class="entity" data-entity={row.entity} title={row.name.slice(0, 300)}>
      <span class="name">
        <bdi>{row.name}</bdi>
        {row.entity !== null && row.kind === "process" && row.process !== null && (
          <span class="quiet"> {pidOf(row.process)}</span>
        )}
      </span>
      {row.calls !== null && (
        <span class="count" title={`${formatInteger(row.calls)} calls${isOfAll.value ? "" : " of this process"}`}>
          {formatInteger(row.calls)}
        </span>
      )}
    </span>
  );
}

/** Several processes may have run one program. */
const pidOf = (process: number) => summary.value?.processes.find((one) => one.process_id === process)?.pid ?? "";

/** What is known of the entity whose calls are listed. */
function ChosenEntity() {
  const chosen = chosenEntity.value;
  if (!chosen) {
    return null;
  }
  return (
    <div class="chosen-entity" data-chosen-entity={chosen.entity}>
      <h3>
        <bdi>{chosen.name.slice(0, 200)}</bdi>
      </h3>
      <dl class="facts">
        <dt>Kind</dt>
        <dd>{chosen.kind}</dd>
        <dt>Calls</dt>
        <dd>
          {!isOfAll.value && `${formatInteger(chosen.calls ?? 0)} of this process, `}
          {formatInteger(chosen.all_calls ?? 0)} in all
        </dd>
        {chosen.touches.length > 1 && <By touches={chosen.touches} />}
        {chosen.parent !== null && (
          <>
            <dt>Of</dt>
            <dd>
              <button
                type="button"
                class="plain"
                onClick={() => showEntity({ entity: chosen.parent, tid: null, process: null })}
              >
                <bdi>{chosen.parent_name?.slice(0, 200) || `entity ${chosen.parent}`}</bdi>
              </button>
            </dd>
          </>
        )}
        <dt>Known</dt>
        <dd>
          from {formatDuration(chosen.from)} to {formatDuration(chosen.to)}
        </dd>
        <dt>Bytes</dt>
        <dd>
          {formatInteger(sum(chosen.touches, "bytes_read"))} read, {formatInteger(sum(chosen.touches, "bytes_written"))}{" "}
          written
        </dd>
        {chosen.details.map(([name, value]) => (
          <>
            <dt>
              <bdi>{name}</bdi>
            </dt>
            <dd>
              <bdi>{value}</bdi>
            </dd>
          </>
        ))}
      </dl>
      <Life chosen={chosen} />
    </div>
  );
}

/** What each of the processes that share it did with it. */
function By({ touches }: { touches: readonly Touch[] }) {
  return (
    <>
      <dt>By</dt>
      <dd data-shared-by={touches.length}>
        {touches.slice(0, MOST_SHARING).map(({ process, roles }) => (
          <div key={process}>
            <button type="button" class="plain" onClick={() => showProcess(process)} title="Its calls">
              <bdi>{processName.value(process)}</bdi>
            </button>
            : {roles.map(([role, n]) => `${role} ${formatInteger(n)}`).join(", ")}
          </div>
        ))}
        {touches.length > MOST_SHARING && `and ${formatInteger(touches.length - MOST_SHARING)} more`}
      </dd>
    </>
  );
}

function sum(touches: readonly Touch[], of: "bytes_read" | "bytes_written"): number {
  return touches.reduce((all, touch) => all + touch[of], 0);
}

/** Who opened, shared, used and closed it, by time; a call of a process that is looked at can be gone to. */
function Life({ chosen }: { chosen: OpenedEntity }) {
  if (chosen.life.length === 0) {
    return null;
  }
  const isShared = new Set(chosen.life.map(({ process }) => process)).size > 1;
  return (
    <>
      <h4>Its life</h4>
      <ol class="life" data-life={chosen.life_total}>
        {chosen.life.map((event, index) => (
          <li key={index}>
            <span class="quiet">{formatCallTime(event.time)}</span> <b>{event.role}</b>{" "}
            {event.call === null ? (
              <bdi>{event.name}</bdi>
            ) : (
              <button type="button" class="plain" onClick={() => void goToCall(event.call!, event.process)}>
                <bdi>{event.name}</bdi>
              </button>
            )}
            {event.more > 0 && <span class="quiet"> and {formatInteger(event.more)} more</span>}
            {isShared && (
              <span class="quiet">
                {" "}
                by <bdi>{processName.value(event.process)}</bdi>
              </span>
            )}
          </li>
        ))}
      </ol>
      {chosen.life_total > chosen.life.length && (
        <p class="quiet">and {formatInteger(chosen.life_total - chosen.life.length)} more</p>
      )}
    </>
  );
}

function isChosen(row: EntityRow): boolean {
  if (row.entity !== null) {
    return calls.value.entity === row.entity;
  }
  const own = threads.value;
  return row.tid !== null ? own?.length === 1 && own[0] === row.tid : own === null && row.process === processId.value;
}
