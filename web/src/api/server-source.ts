// The server's answers. The token comes from the address' fragment and goes with every request.
import { type Answer, type AnswerSource, ApiError } from "./client.ts";

export class ServerSource implements AnswerSource {
  readonly isFile = false;

  constructor(private readonly token: string) {}

  ask(path: string, words: URLSearchParams, signal?: AbortSignal): Promise<Answer> {
    const text = words.toString();
    return askServer(this.token, `${path}${text ? `?${text}` : ""}`, signal ? { signal } : {});
  }

  async command(name: string): Promise<void> {
    await askServer(this.token, `commands/${name}`, { method: "POST" });
  }
}

/** Ask the server for what is at `path` below api/. Rejects with an ApiError. */
export async function askServer(token: string, path: string, request: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(`api/${path}`, { ...request, headers: { Authorization: `Bearer ${token}` } });
  } catch (error) {
    if (request.signal?.aborted) {
      throw error;
    }
    throw new ApiError(0, "the server does not answer: is `clew view` still running?");
  }
  if (!response.ok) {
    const said = (await response.json().catch(() => ({}))) as { error?: unknown };
    throw new ApiError(response.status, typeof said.error === "string" ? said.error : `status ${response.status}`);
  }
  return response;
}
