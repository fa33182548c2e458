// Asks the server. The token comes from the address' fragment and goes with every request.
import { Container } from "../protocol/container.ts";

/** The server's answer was an error; `message` is what it said. */
export class ApiError extends Error {
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

export type Parameters = Record<string, string | number | boolean | null | undefined>;

export class ApiClient {
  private readonly token: string;

  constructor(token: string) {
    this.token = token;
  }

  /** A JSON object. Throws ApiError. */
  async json<T>(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<T> {
    return (await (await this.request(path, parameters, signal)).json()) as T;
  }

  /** Typed arrays. Throws ApiError. */
  async arrays(path: string, parameters: Parameters = {}, signal?: AbortSignal): Promise<Container> {
    return new Container(await (await this.request(path, parameters, signal)).arrayBuffer());
  }

  private async request(path: string, parameters: Parameters, signal?: AbortSignal): Promise<Response> {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(parameters)) {
      if (value !== null && value !== undefined && value !== false) {
        query.set(name, value === true ? "1" : String(value));
      }
    }
    const text = query.toString();
    let response: Response;
    try {
      response = await fetch(`api/${path}${text ? `?${text}` : ""}`, {
        headers: { Authorization: `Bearer ${this.token}` },
        ...(signal ? { signal } : {}),
      });
    } catch (error) {
      if (signal?.aborted) {
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
}
