import type { GatewayEvent } from 'sluice';

/** Characters of a piece in which a text is streamed again, at a set pace: about a token. */
const pieceLength = 4;

/** Yields a delta with a text as several deltas, each of about a token, and any other event as it is. */
export function* piecesOf(event: GatewayEvent): Generator<GatewayEvent, void> {
  switch (event.type) {
    case 'text-delta':
    case 'reasoning-delta':
    case 'refusal-delta':
      if ('logprobs' in event || event.extra !== undefined) yield event;
      else for (const text of pieces(event.text)) yield { ...event, text };
      return;
    case 'tool-delta':
      for (const input of pieces(event.input)) yield { ...event, input };
      return;
    default:
      yield event;
  }
}

/** Cuts a text where no character is cut. */
function* pieces(text: string): Generator<string, void> {
  if (text.length <= pieceLength) {
    yield text;
    return;
  }
  for (let start = 0; start < text.length;) {
    let end = start + pieceLength;
    // The second half of a pair stays with its first.
    const next = text.charCodeAt(end);
    if (next >= 0xdc00 && next <= 0xdfff) end += 1;
    yield text.slice(start, end);
    start = end;
  }
}
