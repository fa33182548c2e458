// The listing of the process as signals: its rows, and their code, which is loaded in pages as they come into sight.
import { computed, effect, signal } from "@preact/signals";
import {
  type CodeBlock,
  type CodeLines,
  fetchListing,
  fetchListingIndex,
  fetchListingLines,
  fetchReferences,
  type References,
} from "../../api/code.ts";
import { LISTING_PAGE } from "../../protocol/generated.ts";
import { nameLine } from "../flow/flow-boxes.ts";
import { selectedBlock, selectedFunction } from "../selected.ts";
import { client, counts, failure, functions, processId } from "../session.ts";
import { threads, viewState } from "../view-state.ts";
import { ListingRows } from "./listing-rows.ts";

const MOST_PAGES = 300;

interface Page {
  blocks: CodeBlock[] | null;
  lines: CodeLines | null;
}

/** Rows of the listing; null until they are known. */
export const listingRows = signal<ListingRows | null>(null);
/** Who comes to the selected block, and where it leads; null until that is known. */
export const references = signal<References | null>(null);
/** Changes whenever a page has come. */
export const pagesLoaded = signal(0);

/** The block that the listing stands at: the selected one, else the start of the selected or the busiest function. */
export const listedBlock = computed(() => {
  const of = functions.value;
  if (!of || of.count === 0) {
    return -1;
  }
  if (selectedBlock.value >= 0) {
    return selectedBlock.value;
  }
  const executed = counts.value?.functionInstructions;
  const chosen = selectedFunction.value;
  if (chosen >= 0) {
    return of.entryBlock[chosen];
  }
  return executed
    ? of.entryBlock[executed.reduce((best, instructions, i) => (instructions > executed[best] ? i : best), 0)]
    : -1;
});

/** Executions of the most executed block, as far as is known. */
export const mostExecuted = computed(() => {
  const all = counts.value?.blockExecutions;
  pagesLoaded.value;
  return all ? all.reduce((most, one) => Math.max(most, one), 0) : mostLoaded;
});

let pages = new Map<number, Page>();
let mostLoaded = 0;

/** The code of the block at a place; null while it is loaded, which asking for it begins. */
export function blockAt(place: number): CodeBlock | null {
  return pageOf(place).blocks?.[place % LISTING_PAGE] ?? null;
}

/** `parser.c:120`, of an instruction of the block at a place; empty where it is not known, or not yet. */
export function lineAt(place: number, instruction: number): string {
  const { blocks, lines } = pageOf(place);
  const block = blocks?.[place % LISTING_PAGE];
  return block && lines ? nameLine(lines, lines.lines[String(block.block)]?.[instruction] ?? null) : "";
}

function pageOf(place: number): Page {
  const number = Math.floor(place / LISTING_PAGE);
  let page = pages.get(number);
  if (!page) {
    page = { blocks: null, lines: null };
    pages.set(number, page);
    if (pages.size > MOST_PAGES) {
      pages.delete(pages.keys().next().value!);
    }
    loadPage(number, page).catch((error: unknown) => {
      failure.value = error instanceof Error ? error.message : String(error);
    });
  }
  return page;
}

async function loadPage(number: number, page: Page): Promise<void> {
  const all = pages;
  const [trace, id] = [viewState.peek().trace, processId.peek()];
  const start = number * LISTING_PAGE;
  const found = await fetchListing(client(), trace, id, start, LISTING_PAGE, threads.peek());
  if (all !== pages) {
    return;
  }
  page.blocks = found.blocks;
  mostLoaded = found.blocks.reduce((most, block) => Math.max(most, block.executions), mostLoaded);
  pagesLoaded.value++;
  const lines = await fetchListingLines(client(), trace, id, start, LISTING_PAGE);
  if (all === pages) {
    page.lines = lines;
    pagesLoaded.value++;
  }
}

/** Load the listing of the process that is looked at, until the function returned is called. */
export function followListing(): () => void {
  const trace = computed(() => viewState.value.trace);
  const fail = (error: unknown) => {
    if (!(error instanceof DOMException && error.name === "AbortError")) {
      failure.value = error instanceof Error ? error.message : String(error);
    }
  };
  const stopIndex = effect(() => {
    const [at, id] = [trace.value, processId.value];
    forget();
    listingRows.value = null;
    const asking = new AbortController();
    if (id >= 0) {
      fetchListingIndex(client(), at, id, asking.signal)
        .then((index) => {
          if (!asking.signal.aborted) {
            listingRows.value = new ListingRows(index);
          }
        })
        .catch(fail);
    }
    return () => asking.abort();
  });
  const stopThreads = effect(() => {
    threads.value;
    forget();
  });
  const stopReferences = effect(() => {
    const [at, id, block, chosen] = [trace.value, processId.value, listedBlock.value, threads.value];
    references.value = null;
    const asking = new AbortController();
    if (id >= 0 && block >= 0 && functions.value?.processId === id) {
      fetchReferences(client(), at, id, block, chosen, asking.signal)
        .then((found) => {
          if (!asking.signal.aborted) {
            references.value = found;
          }
        })
        .catch(fail);
    }
    return () => asking.abort();
  });
  return () => {
    stopIndex();
    stopThreads();
    stopReferences();
    forget();
    listingRows.value = null;
  };
}

/** What was loaded is of another process, or of other threads. */
function forget(): void {
  pages = new Map();
  mostLoaded = 0;
  pagesLoaded.value = pagesLoaded.peek() + 1;
}
