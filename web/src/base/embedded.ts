// What is embedded in the document, where the page is a file of its own: texts by the ids of elements that hold them in
// base64, some of them compressed. Where the page comes from a server there are none.

/** The text of an element of the document; null where there is none. */
export type ReadElement = (id: string) => string | null;

export const readElement: ReadElement = (id) =>
  typeof document === "undefined" ? null : (document.getElementById(id)?.textContent ?? null);

/** Bytes written in base64. Throws an Error for what is none. */
export function decodeBase64(text: string): Uint8Array<ArrayBuffer> {
  const letters = atob(text);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) {
    bytes[i] = letters.charCodeAt(i);
  }
  return bytes;
}

/** What was compressed (RFC 1951) and then written in base64. Rejects what is none. */
export async function inflateBase64(text: string): Promise<ArrayBuffer> {
  const stream = new Blob([decodeBase64(text)]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return await new Response(stream).arrayBuffer();
}

/** A worker whose script is embedded; null where it is not. A file may not start one from another file. */
export function startEmbeddedWorker(name: string): Worker | null {
  const script = readElement(`clew-worker-${name}`);
  if (script === null) {
    return null;
  }
  const address = URL.createObjectURL(new Blob([decodeBase64(script)], { type: "text/javascript" }));
  // No module: a file's page may not load one. The build leaves no imports in it.
  const worker = new Worker(address);
  // Its script is read by the time that it says something; until then the address has to stay.
  worker.addEventListener("message", () => URL.revokeObjectURL(address), { once: true });
  return worker;
}
