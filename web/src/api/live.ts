// Listens to a recording that goes on: a WebSocket that is opened again whenever it breaks, and on which each frame is
// acknowledged. Where the page is, the server is told; what frames mean is not known here.
import { Container } from "../protocol/container.ts";

/** What of a recording is there already: docs/format/container.md, as `live`. */
export interface LivePlace {
  epoch: string;
  sequence: number;
  has: number;
}

export interface LiveListener {
  /** A frame came. An Error thrown means that it does not fit: all is asked for again. */
  onFrame(frame: Container): void;
  /** Whether the connection is there, and how often in a row it could not be opened. */
  onConnection(isOpen: boolean, attempts: number): void;
  /** What is there already. */
  place(): LivePlace;
}

const FIRST_DELAY_MS = 100;
const MOST_DELAY_MS = 3000;

export class LiveConnection {
  private socket: WebSocket | null = null;
  private timer = 0;
  private attempts = 0;
  private isClosed = false;

  constructor(
    private readonly token: string,
    private readonly listener: LiveListener,
    /** The process that is looked at; -1 for the one that does most. */
    private process: number,
  ) {
    this.open();
  }

  /** Look at another process. */
  watch(process: number): void {
    if (process !== this.process) {
      this.process = process;
      this.say({ process });
    }
  }

  /** Listen no more. */
  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
    this.socket?.close();
  }

  /** Break the connection, as a network may; it is opened again. */
  drop(): void {
    this.socket?.close();
  }

  private open(): void {
    const { protocol, host, pathname } = location;
    const folder = pathname.slice(0, pathname.lastIndexOf("/") + 1);
    const address = `${protocol === "https:" ? "wss:" : "ws:"}//${host}${folder}api/live`;
    // Nothing else of a request is in a page's hands; no browser sends these to another server.
    const socket = new WebSocket(address, ["clew.live", `clew.token.${this.token}`]);
    socket.binaryType = "arraybuffer";
    this.socket = socket;
    socket.onopen = () => {
      this.attempts = 0;
      this.say({ process: this.process, ...this.listener.place() });
      this.listener.onConnection(true, 0);
    };
    socket.onmessage = ({ data }: MessageEvent<ArrayBuffer>) => {
      const frame = new Container(data);
      try {
        this.listener.onFrame(frame);
      } catch (error) {
        this.say({ epoch: "", sequence: -1, has: -1 });
        queueMicrotask(() => {
          throw error;
        });
      }
      this.say({ ack: frame.meta.sequence });
    };
    socket.onclose = () => {
      if (this.socket === socket && !this.isClosed) {
        this.listener.onConnection(false, ++this.attempts);
        const delay = Math.min(FIRST_DELAY_MS * 2 ** Math.min(this.attempts - 1, 8), MOST_DELAY_MS);
        this.timer = window.setTimeout(() => this.open(), delay);
      }
    };
  }

  private say(words: object): void {
    if (this.socket?.readyState === WebSocket.OPEN) {
      this.socket.send(JSON.stringify(words));
    }
  }
}
