// Which names a few typed letters may mean, and how well.

/** How well `query` names `name`: higher is better, 0 not at all. Both in lower case. */
export function matchName(name: string, query: string): number {
  if (!query) {
    return 0;
  }
  const at = name.indexOf(query);
  if (at === 0) {
    return name.length === query.length ? 6 : 5;
  }
  if (at > 0) {
    return findWordStart(name, query, at) ? 4 : 3;
  }
  return matchLetters(name, query);
}

/** Whether `query` stands somewhere from `at` on where a word of the name begins. */
function findWordStart(name: string, query: string, at: number): boolean {
  while (at >= 0) {
    if (!isLetter(name.charCodeAt(at - 1))) {
      return true;
    }
    at = name.indexOf(query, at + 1);
  }
  return false;
}

/** All letters in their order with others between: 2 if most begin words, else 1. */
function matchLetters(name: string, query: string): number {
  let at = -1;
  let starts = 0;
  for (const letter of query) {
    at = name.indexOf(letter, at + 1);
    if (at < 0) {
      return 0;
    }
    starts += at === 0 || !isLetter(name.charCodeAt(at - 1)) ? 1 : 0;
  }
  return starts * 2 > query.length ? 2 : 1;
}

function isLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 48 && code <= 57);
}

/** Indices of the names that `query` may mean, the best first; of equally good ones those of greater weight. */
export function rankNames(
  names: readonly string[],
  query: string,
  weight: (index: number) => number,
  limit: number,
): number[] {
  const wanted = query.trim().toLowerCase();
  const found: { index: number; score: number }[] = [];
  for (let index = 0; index < names.length; index++) {
    const score = matchName(names[index].toLowerCase(), wanted);
    if (score > 0) {
      found.push({ index, score });
    }
  }
  found.sort((a, b) => b.score - a.score || weight(b.index) - weight(a.index) || a.index - b.index);
  return found.slice(0, limit).map((one) => one.index);
}
