/** First steps: a provider, an API key and the first call, each done by itself once the gateway has it. */
import { useQuery, useQueryClient } from '@tanstack/react-query';
import { useEffect, useState, useSyncExternalStore, type ReactNode } from 'react';
import type { ChannelView, KeyWithValue, UsageRecordView } from '../../../admin/schemas/index.ts';
import { api } from '../parts/api.ts';
import { configApi } from '../parts/config-api.ts';
import { showChangeResult } from '../parts/config-words.ts';
import { Icon } from '../parts/icons.tsx';
import { useMay } from '../parts/may.ts';
import { addressOf } from '../parts/router.ts';
import { duration } from '../parts/text.ts';
import { CallStep } from './call-step.tsx';
import { ConfigForm } from './config-form.tsx';
import { KeyForm } from './key-form.tsx';
import { OnceOnly } from './key-once.tsx';

const place = 'sluice-first-steps';
const watchers = new Set<() => void>();

/** Remembers in this browser that the guide has begun or was closed. */
function remember(state: 'begun' | 'closed'): void {
  localStorage.setItem(place, state);
  for (const watcher of watchers) watcher();
}

const watch = (watcher: () => void): (() => void) => {
  watchers.add(watcher);
  return () => watchers.delete(watcher);
};

/** Milliseconds between two looks while a step is open. */
const lookEvery = 2_000;

const providersOf = (channels: readonly ChannelView[] = []): readonly ChannelView[] =>
  channels.filter(({ kind }) => kind !== 'demo');

const isAnswer = (call: UsageRecordView | undefined): boolean => call !== undefined && call.status < 400;

/** Returns the newest call; where it has failed, one that was answered, if there is any. */
async function findCall(): Promise<{ readonly call?: UsageRecordView | undefined }> {
  const [newest] = (await api.usage({ limit: '1' }, undefined)).records;
  if (newest === undefined || isAnswer(newest)) return { call: newest };
  const [answered] = (await api.usage({ limit: '1', outcome: 'ok' }, undefined)).records;
  return { call: answered ?? newest };
}

/** Returns the completed first steps of a gateway. With `isOpen`, each step is checked until it is done. */
function useSteps(isOpen: boolean) {
  const every = (isDone: boolean): number | false => (isOpen && !isDone ? lookEvery : false);
  const channels = useQuery({
    queryKey: ['channels'],
    queryFn: api.channels,
    refetchInterval: ({ state }) => every(providersOf(state.data?.channels).length > 0),
  });
  const keys = useQuery({
    queryKey: ['keys', 'first'],
    queryFn: () => api.keys({ limit: 1 }, undefined),
    refetchInterval: ({ state }) => every((state.data?.keys.length ?? 0) > 0),
  });
  const calls = useQuery({
    queryKey: ['usage', 'first'],
    queryFn: findCall,
    refetchInterval: ({ state }) => every(isAnswer(state.data?.call)),
  });
  const providers = providersOf(channels.data?.channels);
  const [key] = keys.data?.keys ?? [];
  const call = calls.data?.call;
  const isKnown = channels.data !== undefined && keys.data !== undefined && calls.data !== undefined;
  return { isKnown, channels: channels.data?.channels ?? [], providers, key, call };
}

/** The guide above the overview: while there is neither a provider nor a call, and then until it is closed. */
export function FirstStepsCard() {
  const may = useMay('createConfig');
  const state = useSyncExternalStore(watch, () => localStorage.getItem(place));
  return may && state !== 'closed' ? <FreshCard hasBegun={state === 'begun'} /> : null;
}

function FreshCard({ hasBegun }: { readonly hasBegun: boolean }) {
  const { isKnown, providers, call } = useSteps(false);
  const isFresh = isKnown && providers.length === 0 && call === undefined;
  useEffect(() => {
    // It stays when the first step is done. A gateway in use is not looked at again: that would take three requests with each overview.
    if (isKnown && !hasBegun) remember(isFresh ? 'begun' : 'closed');
  }, [isKnown, isFresh, hasBegun]);
  if (!isKnown || !(hasBegun || isFresh)) return null;
  return (
    <section className="card" aria-label="First steps">
      <header>
        <h2>First steps</h2>
        <button
          type="button"
          className="button small plain aside"
          aria-label="Close the first steps"
          title="They stay in the list of views"
          onClick={() => remember('closed')}
        >
          <Icon name="close" />
        </button>
      </header>
      <div className="body">
        <Steps />
      </div>
    </section>
  );
}

/** The guide as a view of its own. */
export function FirstSteps() {
  return (
    <>
      <header>
        <h1>First steps</h1>
        <p>Three steps to the first call through this gateway.</p>
      </header>
      <div className="card">
        <div className="body">
          <Steps />
        </div>
      </div>
    </>
  );
}

function Steps() {
  const { providers, channels, key, call } = useSteps(true);
  const [made, setMade] = useState<KeyWithValue>();
  const isAnswered = isAnswer(call);
  return (
    <ol className="steps">
      <Step number={1} title="Add a provider" isDone={providers.length > 0}>
        <ProviderStep providers={providers} />
      </Step>
      <Step number={2} title="Create an API key" isDone={key !== undefined}>
        <KeyStep hasKey={key !== undefined} made={made} onMade={setMade} />
      </Step>
      <Step number={3} title="Make the first call" isDone={isAnswered}>
        {call !== undefined && (
          <p role="status" className={isAnswered ? '' : 'notice warn'}>
            <span>
              {isAnswered ? 'A call has arrived: ' : 'A call has arrived and failed: '}
              <a href={addressOf('usage', { call: call.id })}>{call.model}</a>, status {call.status}
              {call.code !== undefined && ` (${call.code})`}, {duration(call.ms)}
              {call.reason !== undefined && `. ${call.reason}`}
            </span>
          </p>
        )}
        {!isAnswered && <CallStep secret={made?.value} channels={[...providers, ...channels]} />}
      </Step>
    </ol>
  );
}

function Step({
  number,
  title,
  isDone,
  children,
}: {
  readonly number: number;
  readonly title: string;
  readonly isDone: boolean;
  readonly children: ReactNode;
}) {
  return (
    <li className={isDone ? 'done' : ''}>
      <span className="mark" aria-hidden="true">
        {isDone ? <Icon name="check" /> : number}
      </span>
      <div className="stack">
        <h2>
          {title}
          <span className="visually-hidden">{isDone ? ' (done)' : ' (open)'}</span>
        </h2>
        {children}
      </div>
    </li>
  );
}

function ProviderStep({ providers }: { readonly providers: readonly ChannelView[] }) {
  const queries = useQueryClient();
  const mayRead = useMay('listPluginForms');
  const forms = useQuery({
    queryKey: ['config', 'forms'],
    queryFn: configApi.forms,
    staleTime: Infinity,
    enabled: mayRead,
  });
  const [isOpen, setOpen] = useState(false);
  return (
    <>
      <p>
        {providers.length === 0 ? (
          'The gateway sends calls to a provider by a channel: its kind, your key and the models.'
        ) : (
          <>
            {providers.map(({ id }) => id).join(', ')}. <a href={addressOf('config')}>See the channels</a>
          </>
        )}
      </p>
      {providers.length === 0 && (
        <div>
          <button
            type="button"
            className="button primary"
            disabled={forms.data === undefined}
            onClick={() => setOpen(true)}
          >
            Add a provider
          </button>
        </div>
      )}
      {isOpen && forms.data !== undefined && (
        <ConfigForm
          kind="channel"
          forms={forms.data}
          taken={[]}
          onClose={() => setOpen(false)}
          onSaved={(name, changed) => {
            setOpen(false);
            showChangeResult(`${name} is saved.`, changed);
            void queries.invalidateQueries({ queryKey: ['channels'] });
          }}
        />
      )}
    </>
  );
}

function KeyStep({
  hasKey,
  made,
  onMade,
}: {
  readonly hasKey: boolean;
  readonly made: KeyWithValue | undefined;
  readonly onMade: (made: KeyWithValue) => void;
}) {
  const [isOpen, setOpen] = useState(false);
  const [isShown, setShown] = useState(false);
  return (
    <>
      <p>
        {hasKey ? (
          <>
            Clients send it with each call. <a href={addressOf('keys')}>See the API keys</a>
          </>
        ) : (
          'Clients send it with each call. It may have a budget and limits.'
        )}
      </p>
      {made === undefined && (
        <div>
          <button
            type="button"
            className={hasKey ? 'button' : 'button primary'}
            onClick={() => setOpen(true)}
          >
            {hasKey ? 'Create another one' : 'Create an API key'}
          </button>
        </div>
      )}
      {isOpen && (
        <KeyForm
          apiKey={undefined}
          onClose={() => setOpen(false)}
          onMade={(fresh) => {
            onMade(fresh);
            setShown(true);
          }}
        />
      )}
      {isShown && made !== undefined && <OnceOnly made={made} onClose={() => setShown(false)} />}
    </>
  );
}
