import type { WireFrame } from '../../core/sdk/format.ts';

/**
 * What is wrong with the frames of a complete stream of images, each problem a sentence; empty for a legal one. Every sketch belongs to an
 * image that comes behind it; the last frame completes an image or tells an error, and nothing follows an error.
 */
export function checkLegal(frames: readonly WireFrame[]): string[] {
  const problems: string[] = [];
  const names = new Set<string>();
  let open = false;
  let complete = 0;
  let failed = false;
  frames.forEach((frame, at) => {
    const problem = (what: string): void => void problems.push(`frame ${at}: ${what}`);
    if (!('json' in frame)) {
      problem('is no JSON');
      return;
    }
    const { type } = frame.json;
    if (frame.event !== type) problem(`its event is ${frame.event}, its type ${String(type)}`);
    if (failed) problem('stands behind an error');
    if (type === 'error') {
      failed = true;
      if (typeof frame.json.error !== 'object') problem('an error without one');
      return;
    }
    const [, name, kind] =
      /^(image_generation|image_edit)\.(partial_image|completed)$/.exec(String(type)) ?? [];
    if (name === undefined) return;
    names.add(name);
    if (typeof frame.json.created_at !== 'number') problem('no time');
    const shows = typeof frame.json.b64_json === 'string' || typeof frame.json.url === 'string';
    if (!shows) problem('no image');
    if (kind === 'partial_image') {
      open = true;
      if (!Number.isInteger(frame.json.partial_image_index)) problem('a sketch without an index');
    } else {
      open = false;
      complete += 1;
    }
  });
  if (names.size > 1) problems.push('events of two operations');
  if (!failed && complete === 0) problems.push('no image was completed');
  if (!failed && open) problems.push('a sketch whose image never came');
  return problems;
}
