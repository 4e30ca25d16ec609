import { expect, test, vi } from 'vitest';
import { Notices } from '../../../core/sdk/notices.ts';
import { keptLog } from '../../support/log.ts';

test('a listener hears until it is taken off', () => {
  const notices = new Notices(keptLog().log);
  const listener = vi.fn<() => void>();
  const stop = notices.on('reloaded', listener);
  notices.emit('reloaded');
  stop();
  notices.emit('reloaded');
  expect(listener).toHaveBeenCalledTimes(1);
});

test('a listener that throws harms neither who emits nor the other listeners, and is logged', () => {
  const { log, lines } = keptLog();
  const notices = new Notices(log);
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
  const notices = new Notices(keptLog().log);
  for (let count = 0; count < 50; count += 1) notices.on('reloaded', () => {});
  expect(warned).not.toHaveBeenCalled();
  warned.mockRestore();
});
