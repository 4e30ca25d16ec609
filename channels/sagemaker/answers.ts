import { concat, defer, filter, firstValueFrom, map, of, throwError, type Observable } from 'rxjs';
import { wholeBytes, parseObject, type Upstream } from 'sluice';
import { truncatedResponse, EventStreamCutter, eventStreamType, type Frame } from 'sluice/channel-kit';

/** Status of an error of the container, whose own status and body are members of it: `ModelError`. */
const containerFailed = 424;
/** Maximum number of bytes of such an error that are read. */
const failureLimit = 1024 * 1024;

/** Returns what the container itself answered, as server-sent events where that is a stream. */
export async function containerAnswer(answer: Upstream): Promise<Upstream> {
  if (answer.status === containerFailed) return withOwnStatus(answer);
  if (!String(answer.headers['content-type'] ?? '').includes(eventStreamType)) return answer;
  return {
    ...answer,
    headers: { ...answer.headers, 'content-type': 'text/event-stream' },
    bytes: serverSentEvents(answer.bytes),
  };
}

/**
 * Returns the refusal of a container with its own status and body, so that it is distinguished from a failure.
 * https://docs.aws.amazon.com/sagemaker/latest/APIReference/API_runtime_InvokeEndpoint.html#API_runtime_InvokeEndpoint_Errors
 */
async function withOwnStatus(answer: Upstream): Promise<Upstream> {
  const body = await firstValueFrom(answer.bytes.pipe(wholeBytes(failureLimit)));
  const { OriginalStatusCode: status, OriginalMessage: message } = parseObject(body.toString()) ?? {};
  const isRefusal =
    typeof status === 'number' && status >= 400 && status < 500 && typeof message === 'string';
  return isRefusal ? { ...answer, status, bytes: of(Buffer.from(message)) } : { ...answer, bytes: of(body) };
}

/** Joins the payload parts of an event stream, which are cut anywhere. DJL LMI sends JSON lines in them, vLLM and TGI server-sent events. */
function serverSentEvents(bytes: Upstream['bytes']): Observable<Buffer> {
  // `latin1`: a part may end inside a character.
  const cutter = new EventStreamCutter('latin1');
  const lines = new JsonLines();
  const parts = bytes.pipe(
    map((chunk) => Buffer.concat(cutter.push(chunk).map((frame) => partOf(frame, lines)))),
    filter(({ length }) => length > 0),
  );
  const end = defer(() => (cutter.unfinished ? throwError(truncatedResponse) : of(Buffer.from(lines.end()))));
  return concat(parts, end);
}

function partOf({ event, data }: Frame, lines: JsonLines): Buffer {
  if (event !== 'error') return Buffer.from(lines.push(data), 'latin1');
  const { __type: type, Message: message, ErrorCode: code } = parseObject(data) ?? {};
  return Buffer.from(`\n\ndata: ${JSON.stringify({ error: { type, code, message } })}\n\n`);
}

const finish = /"finish_reason":\s*"/;
/** Maximum number of characters of the pattern above. */
const finishLength = 32;

/**
 * Makes server-sent events of lines that are JSON objects, and leaves all others as they are: no line of server-sent events begins with a
 * brace. Characters stand for bytes.
 */
class JsonLines {
  #isStart = true;
  #isJson = false;
  #isFinished = false;
  #tail = '';

  push(text: string): string {
    let events = '';
    for (let at = 0; at < text.length;) {
      if (this.#isStart) {
        this.#isJson = text[at] === '{';
        if (this.#isJson) events += 'data: ';
      }
      const end = text.indexOf('\n', at);
      this.#isStart = end >= 0;
      const next = this.#isStart ? end + 1 : text.length;
      events += text.slice(at, next);
      if (this.#isJson) this.#look(text.slice(at, next));
      if (this.#isJson && this.#isStart) events += '\n';
      at = next;
    }
    return events;
  }

  /** Returns the last word of a reply that was finished in such lines, which have none. */
  end(): string {
    return this.#isFinished ? '\n\ndata: [DONE]\n\n' : '';
  }

  #look(piece: string): void {
    const text = this.#tail + piece;
    this.#isFinished ||= finish.test(text);
    this.#tail = text.slice(-finishLength);
  }
}
