import { expect, test, vi } from 'vitest';
import { Notices } from '../../../core/sdk/notices.ts';
import { testTools } from '../../plugins/_call.ts';

test('a listener hears until it is taken off', () => {
  const notices = new Notices(testTools().tools.log);
  const listener = vi.fn<() => void>();
  const stop = notices.on('reloaded', listener);
  notices.emit('reloaded');
  stop();
  notices.emit('reloaded');
  expect(listener).toHaveBeenCalledTimes(1);
});

test('a listener that throws harms neither who emits nor the other listeners, and is logged', () => {
  const { tools, lines } = testTools();
  const notices = new Notices(tools.log);
  const listener = vi.fn<() => void>();
  notices.on('closing', () => {
    throw new Error('clumsy');
  });
  notices.on('closing', listener);
  notices.emit('closing');
  expect(listener).toHaveBeenCalledTimes(1);
  expect(lines).toMatchObject([{ level: 'error', notice: 'closing', error: { message: 'clumsy' } }]);
});

test('any number may listen without a warning', () => {
  const warned = vi.spyOn(process, 'emitWarning');
  const notices = new Notices(testTools().tools.log);
  for (let count = 0; count < 50; count += 1) notices.on('reloaded', () => {});
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
