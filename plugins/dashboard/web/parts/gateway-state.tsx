/** State of the gateway's processes, and the notices above every view. */
import { useQuery } from '@tanstack/react-query';
import { api } from './api.ts';
import { addressOf } from './router.ts';
import { ago } from './text.ts';

/** Shows the state of the processes, read again every few seconds. */
export function useGatewayState() {
  return useQuery({ queryKey: ['status'], queryFn: api.status, refetchInterval: 5_000 });
}

/** Above every view: what an operator must know of the gateway itself. Nothing when all is well. */
export function GatewayNotices() {
  const { data } = useGatewayState();
  if (data === undefined) return null;
  const { lastReload, load } = data;
  return (
    <>
      {lastReload?.ok === false && (
        <div className="notice bad" role="alert">
          <div>
            <strong>
              The reload {ago(lastReload.at)} failed. The previous configuration is still in force.
            </strong>{' '}
            <a href={addressOf('processes')}>Processes</a>
            <ul>
              {lastReload.problems.map((problem) => (
                <li key={problem}>{problem}</li>
              ))}
            </ul>
          </div>
        </div>
      )}
      {load.strain !== undefined && (
        <div className="notice warn" role="alert">
          New calls are refused:{' '}
          {load.strain === 'memory' ? 'the memory is nearly full.' : 'the process does not keep up.'}
        </div>
      )}
    </>
  );
}
