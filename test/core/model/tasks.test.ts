import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { abandon, advance, isFinished, reportOf, transitions, type Task } from '../../../core/model/tasks.ts';
import type { VideoState } from '../../../core/model/video.ts';

/** A task as it stands after it was made. */
function newTask(given: Partial<Task> = {}): Task {
  return {
    id: 'video_1',
    owner: 'key_1',
    format: 'videos',
    createdAt: 1_000,
    updatedAt: 1_000,
    expiresAt: 1e15,
    deadline: 1e14,
    state: 'queued',
    progress: 0,
    model: 'm',
    upstreamModel: 'theirs',
    channel: 'c',
    key: 'k',
    upstreamFormat: 'videos',
    upstreamId: 'up_1',
    images: 0,
    prompt: 'the moon',
    charged: { microDollars: 0, tokens: 0 },
    chargedAt: 1_000,
    chargeId: 'req_1',
    polledAt: 1_000,
    asks: 0,
    refusals: 0,
    ...given,
  };
}

const states = Object.keys(transitions) as VideoState[];
const report = fc.record({
  id: fc.constant('up_1'),
  state: fc.constantFrom(...states, undefined),
  progress: fc.oneof(fc.integer({ min: -50, max: 500 }), fc.constant(Number.NaN)),
});

describe('a task', () => {
  test('never leaves its end, never goes back, and is at 100 only there', () => {
    fc.assert(
      fc.property(fc.array(report, { maxLength: 20 }), (reports) => {
        let task = newTask();
        for (const [index, one] of reports.entries()) {
          const next = advance(task, one, 2_000 + index);
          if (isFinished(task)) expect(next).toBe(task);
          else expect(transitions[task.state]).toContain(next.state);
          expect(next.progress).toBeGreaterThanOrEqual(task.progress);
          expect(next.progress === 100).toBe(isFinished(next));
          expect(next.finishedAt !== undefined).toBe(isFinished(next));
          expect(next.error !== undefined).toBe(next.state === 'failed' || next.state === 'cancelled');
          task = next;
        }
      }),
    );
  });

  test('keeps its state at a word that nobody knows, and at one that leads back', () => {
    const running = advance(newTask(), { id: 'up_1', state: 'in_progress', progress: 40 }, 2_000);
    expect(advance(running, { id: 'up_1', state: undefined }, 3_000)).toMatchObject({
      state: 'in_progress',
      progress: 40,
    });
    expect(advance(running, { id: 'up_1', state: 'queued', progress: 3 }, 3_000)).toMatchObject({
      state: 'in_progress',
      progress: 40,
    });
  });

  test('that is given up says why, unless it was over before', () => {
    expect(abandon(newTask(), 'task_timeout', 'Too late.', 5_000)).toMatchObject({
      state: 'failed',
      progress: 100,
      finishedAt: 5_000,
      error: { code: 'task_timeout', message: 'Too late.' },
    });
    const done = advance(
      newTask(),
      { id: 'up_1', state: 'completed', url: 'https://x.example/v.mp4' },
      4_000,
    );
    expect(abandon(done, 'task_timeout', 'Too late.', 5_000)).toBe(done);
  });

  test('shows nothing of where it is made', () => {
    const text = JSON.stringify(reportOf(newTask({ error: { code: 'x', message: 'y' } })));
    for (const inner of ['up_1', 'key_1', 'theirs', 'req_1', '"c"', '"k"']) expect(text).not.toContain(inner);
  });
});
