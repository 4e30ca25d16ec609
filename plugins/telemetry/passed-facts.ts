/** Values that a response states about itself. */
export interface Facts {
  readonly id?: string;
  readonly model?: string;
  /** Finish reasons by choice, as the provider spells them if it reports any. */
  readonly finishReasons: readonly string[];
}

/** Maximum number of bytes that are searched at the beginning of a response, and at either end of each of its last chunks. */
const headLength = 2_048;
const endLength = 8_192;

/** Patterns of the members that end and name a response in a format. Quotes in texts are escaped, so that no text matches these members. */
interface Spelling {
  readonly id: RegExp;
  readonly finish: RegExp;
  readonly model: RegExp;
}

/** Patterns by format. */
const spellings: Readonly<Record<string, Spelling>> = {
  'chat-completions': {
    id: /"id"\s*:\s*"([^"\\]{1,200})"/,
    finish: /"finish_reason"\s*:\s*"([\w-]{1,40})"/g,
    model: /"model"\s*:\s*"([^"\\]{1,200})"/,
  },
  messages: {
    id: /"id"\s*:\s*"(msg_[^"\\]{1,200})"/,
    finish: /"stop_reason"\s*:\s*"([\w-]{1,40})"/g,
    model: /"model"\s*:\s*"([^"\\]{1,200})"/,
  },
  responses: {
    id: /"id"\s*:\s*"(resp_[^"\\]{1,200})"/,
    finish: /"type"\s*:\s*"response\.(completed|incomplete|failed)"/g,
    model: /"model"\s*:\s*"([^"\\]{1,200})"/,
  },
  'generate-content': {
    id: /"responseId"\s*:\s*"([^"\\]{1,200})"/,
    finish: /"finishReason"\s*:\s*"([\w-]{1,40})"/g,
    model: /"modelVersion"\s*:\s*"([^"\\]{1,200})"/,
  },
};

/** Members behind which another id than that of the response may stand. */
const content = /"(?:choices|content|output|candidates)"\s*:/;

/**
 * Finds these values in the first chunk and the last chunks of a response that passed through, without parsing them. A value that does not stand
 * where providers write it is left out.
 */
export function passedFacts(format: string, first: Buffer, last: readonly Buffer[], choices: number): Facts {
  const spelling = spellings[format];
  if (spelling === undefined) return { finishReasons: [] };
  const head = first.toString('latin1', 0, headLength);
  const ends = last.map(endsOf).join('\n');
  const beforeContent = head.slice(0, content.exec(head)?.index);
  const id = spelling.id.exec(format === 'generate-content' ? `${head}\n${ends}` : beforeContent)?.[1];
  const model = spelling.model.exec(format === 'generate-content' ? `${head}\n${ends}` : head)?.[1];
  const reasons = [...ends.matchAll(spelling.finish)].flatMap(([, reason]) => reason ?? []);
  return {
    ...(id === undefined ? {} : { id }),
    ...(model === undefined ? {} : { model }),
    finishReasons: reasons.length > 0 ? reasons.slice(-Math.max(1, choices)) : wholeResponse(format, head),
  };
}

/** Returns the status of a response in the Responses format that is not streamed, because no event has it. */
function wholeResponse(format: string, head: string): readonly string[] {
  if (format !== 'responses') return [];
  const status = /"status"\s*:\s*"(completed|incomplete|failed)"/.exec(head)?.[1];
  return status === undefined ? [] : [status];
}

/** Returns the beginning and the end of a chunk, which are all of most chunks, and where the last event of the Responses format begins. */
function endsOf(chunk: Buffer): string {
  if (chunk.length <= 2 * endLength) return chunk.toString('latin1');
  const event = chunk.lastIndexOf('event: response.');
  const named = event < 0 ? '' : `${chunk.toString('latin1', event, event + 256)}\n`;
  return `${chunk.toString('latin1', 0, endLength)}\n${named}${chunk.toString('latin1', chunk.length - endLength)}`;
}
