/** Fields of a channel: its kind, the options that this kind needs, and a trial. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ChannelFormView } from '../../../admin/schemas/index.ts';
import { configApi } from '../parts/config-api.ts';
import { Field, TextField } from '../parts/fields.tsx';
import { isMembers, type Members } from '../parts/json-schema.ts';
import { MemberFields, type PathProblems } from '../parts/schema-fields.tsx';
import { Await } from '../parts/states.tsx';
import { TestResult } from './channels.tsx';

/** Options that are shown of every kind. */
function wantedOf({ own }: ChannelFormView, options: Members): readonly string[] {
  const key = options['keys'] === undefined ? 'key' : 'keys';
  return [key, 'baseUrl', ...own.filter((name) => name !== 'identity'), 'models'];
}

/** The fields of a channel's value. */
export function ChannelFields({
  name,
  value,
  form,
  problems,
  isNew,
  onChange,
  send,
}: {
  readonly name: string;
  readonly value: unknown;
  readonly form: {
    readonly data: ChannelFormView | undefined;
    readonly error: Error | null;
    readonly refetch: () => unknown;
  };
  readonly problems: PathProblems;
  readonly isNew: boolean;
  readonly onChange: (value: unknown) => void;
  /** Returns the value as the gateway gets it. */
  readonly send: () => unknown;
}) {
  const types = useQuery({ queryKey: ['config', 'types'], queryFn: configApi.types, staleTime: Infinity });
  const { type = '', options = {} } = isMembers(value) ? value : {};
  const members = isMembers(options) ? options : {};
  return (
    <>
      <Field label="Kind" hint={isNew ? undefined : 'Enter the key again when you change the kind.'}>
        {(props) => (
          <select
            {...props}
            value={String(type)}
            onChange={({ target }) => onChange({ type: target.value, options: {} })}
          >
            {(types.data?.types ?? [String(type)]).map((one) => (
              <option key={one}>{one}</option>
            ))}
          </select>
        )}
      </Field>
      <Await query={form} what="the options">
        {(data) => (
          <MemberFields
            key={data.name}
            label="the channel"
            path=""
            schema={data.schema}
            value={members}
            onChange={(changed) => onChange({ type, options: changed })}
            problems={problems}
            wanted={wantedOf(data, members)}
          />
        )}
      </Await>
      <ChannelTrial name={name} send={send} />
    </>
  );
}

/** Sends a tiny call through the channel as it stands in the form. */
function ChannelTrial({ name, send }: { readonly name: string; readonly send: () => unknown }) {
  const [model, setModel] = useState('');
  const test = useMutation({
    mutationFn: () => configApi.test(name === '' ? 'trial' : name, send(), model.trim()),
    meta: { quiet: true },
  });
  return (
    <fieldset className="part">
      <legend>Try it before it is saved</legend>
      <div className="row ends">
        <TextField
          label="Model of the trial"
          placeholder="The first one of the list"
          value={model}
          onChange={setModel}
        />
        <button type="button" className="button" disabled={test.isPending} onClick={() => test.mutate()}>
          {test.isPending ? 'Testing…' : 'Test channel'}
        </button>
      </div>
      {test.error !== null && (
        <p className="notice bad" role="alert">
          {test.error.message}
        </p>
      )}
      {test.data !== undefined && <TestResult result={test.data} />}
    </fieldset>
  );
}
