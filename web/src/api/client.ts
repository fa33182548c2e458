// Asks for answers about traces: of the server, or of the file that the page is in.
import { Container } from "../protocol/container.ts";

/** The answer was an error; `message` is what was said. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type Parameters = Record<string, string | number | boolean | null | undefined>;

/** An answer, to be read in one way. */
export interface Answer {
  json(): Promise<unknown>;
  arrayBuffer(): Promise<ArrayBuffer>;
}

/** Where answers come from. */
export interface AnswerSource {
  /** Whether there are only those answers that were recorded, and not any. */
  readonly isFile: boolean;
  /** Rejects with an ApiError. */
  ask(path: string, words: URLSearchParams, signal?: AbortSignal): Promise<Answer>;
}

export class ApiClient {
  constructor(private readonly source: AnswerSource) {}

  get isFile(): boolean {
    return this.source.isFile;
  }

  /** A JSON object. Rejects with an ApiError. */
  async json<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
    return (await (await this.source.ask(path, wordsOf(parameters), signal)).json()) as T;
  }

  /** Typed arrays. Rejects with an ApiError. */
  async arrays(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<Container> {
    return new Container(await this.bytes(path, parameters, signal));
  }

  /** A file. Rejects with an ApiError. */
  async bytes(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<ArrayBuffer> {
    return await (await this.source.ask(path, wordsOf(parameters), signal)).arrayBuffer();
  }
}

function wordsOf(parameters: Parameters): URLSearchParams {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== false) {
      words.set(name, value === true ? "1" : String(value));
    }
  }
  return words;
}
