// What somebody who types into the search may mean. The server says no to what is none after all.

export const SEARCHES = ["symbol", "address", "bytes", "text"] as const;
export type SearchKind = (typeof SEARCHES)[number];

/** The kinds of search that make sense for some text: an address is one by 0x or by being long enough. */
export function kindsOf(query: string): SearchKind[] {
  const text = query.trim();
  if (!text) {
    return [];
  }
  const kinds: SearchKind[] = ["symbol"];
  if (/^(0x[0-9a-f]{1,16}|[0-9a-f]{4,16})$/i.test(text)) {
    kinds.push("address");
  }
  if (/^([0-9a-f]{2}|\?\?)(\s*([0-9a-f]{2}|\?\?)){1,63}$/i.test(text) && /[0-9a-f]/i.test(text)) {
    kinds.push("bytes");
  }
  if (text.length >= 2 && /[a-z]/i.test(text)) {
    kinds.push("text");
  }
  return kinds;
}
