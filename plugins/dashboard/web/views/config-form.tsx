/** The form of a run-time entry, made from the schemas of the gateway. */
import { useMutation, useQuery } from '@tanstack/react-query';
import { useState } from 'react';
import type { ConfigChanged, ConfigEntryView, ConfigForms } from '../../../admin/schemas/index.ts';
import { ApiError } from '../parts/api.ts';
import { configApi } from '../parts/config-api.ts';
import { nameHints, oneOf, pathWithin, problemsOf } from '../parts/config-words.ts';
import { Field, TextField } from '../parts/fields.tsx';
import { FormDialog } from '../parts/form.tsx';
import { isMembers, trimmed, type JsonSchema } from '../parts/json-schema.ts';
import { MemberFields, SchemaPart } from '../parts/schema-fields.tsx';
import { Await } from '../parts/states.tsx';
import { ChannelFields } from './config-channel-fields.tsx';
import { ConfigConflict, findConflict } from './config-conflict.tsx';

const listOfModels: JsonSchema = {
  type: 'array',
  items: { type: 'string' },
  description: 'names and patterns',
};
const oneModel: JsonSchema = { type: 'string', description: 'the model that is meant' };

/** Returns the value of an entry as the gateway gets it. */
function sent(kind: ConfigEntryView['kind'], value: unknown): unknown {
  if (kind !== 'channel' || !isMembers(value)) return trimmed(value) ?? '';
  return { type: value['type'], options: trimmed(value['options'] ?? {}) };
}

/** Properties of the form of an entry. */
interface ConfigFormProps {
  readonly kind: ConfigEntryView['kind'];
  /** Absent for a new one. */
  readonly entry?: ConfigEntryView | undefined;
  readonly forms: ConfigForms;
  /** Names that are taken. */
  readonly taken: readonly string[];
  readonly onClose: () => void;
  readonly onSaved: (name: string, changed: ConfigChanged) => void;
}

/** State of the form: what was typed, how it is saved, and what is wrong with it. */
function useEntryForm(
  kind: ConfigEntryView['kind'],
  entry: ConfigEntryView | undefined,
  forms: ConfigForms,
  taken: readonly string[],
  onSaved: ConfigFormProps['onSaved'],
) {
  const [base, setBase] = useState(entry);
  const free = forms.forms.map((form) => form.name).filter((name) => !taken.includes(name));
  const [name, setName] = useState(entry?.name ?? (kind === 'plugin' ? (free[0] ?? '') : ''));
  const [value, setValue] = useState<unknown>(
    entry?.value ?? (kind === 'channel' ? { type: 'openai', options: {} } : undefined),
  );
  const named = { kind, name: name.trim() };
  const save = useMutation({
    mutationFn: (version: number | undefined) =>
      version === undefined
        ? configApi.create({ ...named, value: sent(kind, value) })
        : configApi.update(named, version, sent(kind, value)),
    meta: { quiet: true },
    onSuccess: (changed) => onSaved(named.name, changed),
  });
  const isConflict = base !== undefined && save.error instanceof ApiError && save.error.status === 412;
  const conflict = useQuery({
    queryKey: ['config', 'conflict', base?.id, base?.version],
    queryFn: () => findConflict(named),
    enabled: isConflict,
    gcTime: 0,
    staleTime: 0,
  });
  const type = isMembers(value) && typeof value['type'] === 'string' ? value['type'] : '';
  const channelForm = useQuery({
    queryKey: ['config', 'type', type],
    queryFn: () => configApi.type(type),
    enabled: kind === 'channel' && type !== '',
    staleTime: Infinity,
  });
  const schema = schemaOf(kind, name, forms, channelForm.data?.schema);
  const found =
    save.error === null || isConflict
      ? firstProblems(base)
      : problemsOf(
          save.error,
          named,
          (option) => kind === 'plugin' || schema.properties?.[option] !== undefined,
        );
  const change = (next: unknown): void => {
    if (save.isError && !isConflict) save.reset();
    setValue(next);
  };
  const rename = (typed: string): void => {
    setName(typed);
    // Every option has a value of another kind.
    if (kind === 'plugin') change(undefined);
    else if (save.isError) save.reset();
  };
  const isNameWrong = save.error instanceof ApiError && save.error.param === 'name';
  return {
    base,
    setBase,
    free,
    name,
    rename,
    value,
    setValue,
    change,
    save,
    isConflict,
    conflict,
    channelForm,
    schema,
    found,
    isNameWrong,
  };
}

/** Makes an entry, or changes one. */
export function ConfigForm({ kind, entry, forms, taken, onClose, onSaved }: ConfigFormProps) {
  const state = useEntryForm(kind, entry, forms, taken, onSaved);
  const { base, name, value, save, isConflict, schema, found, isNameWrong } = state;
  return (
    <FormDialog
      title={entry === undefined ? `Add ${oneOf(kind)}` : `Edit ${entry.name}`}
      action={entry === undefined ? 'Create' : 'Save'}
      form={{
        draft: {},
        problems: {},
        refusal: isNameWrong || found.others.length === 0 ? undefined : found.others.join(' '),
        isPending: save.isPending || isConflict,
        set: () => {},
        submit: () => save.mutate(base?.version),
      }}
      onClose={onClose}
    >
      {isConflict && base !== undefined && (
        <Await query={state.conflict} what="what was changed">
          {(theirs) => (
            <ConfigConflict
              base={base}
              conflict={theirs}
              onTake={(now) => {
                state.setBase(now);
                state.setValue(now.value);
                save.reset();
              }}
              onKeep={(now) => {
                state.setBase(now);
                save.mutate(now.version);
              }}
            />
          )}
        </Await>
      )}
      {entry === undefined && (
        <NameField
          kind={kind}
          options={state.free}
          problem={isNameWrong ? save.error?.message : undefined}
          value={name}
          onChange={state.rename}
        />
      )}
      {kind === 'channel' ? (
        <ChannelFields
          key={base?.version}
          name={name.trim()}
          value={value}
          form={state.channelForm}
          problems={found.at}
          isNew={entry === undefined}
          onChange={state.change}
          send={() => sent(kind, value)}
        />
      ) : (
        <EntryFields
          key={`${base?.version} ${kind === 'plugin' ? name : ''}`}
          kind={kind}
          name={name}
          schema={schema}
          value={value}
          onChange={state.change}
          problems={found.at}
        />
      )}
    </FormDialog>
  );
}

/** The name of a new entry, which for an option is chosen. */
function NameField({
  kind,
  options,
  problem,
  value,
  onChange,
}: {
  readonly kind: ConfigEntryView['kind'];
  readonly options: readonly string[];
  readonly problem: string | undefined;
  readonly value: string;
  readonly onChange: (name: string) => void;
}) {
  if (kind !== 'plugin') {
    return (
      <TextField
        label="Name"
        autoFocus
        hint={nameHints[kind]}
        problem={problem}
        value={value}
        onChange={onChange}
      />
    );
  }
  return (
    <Field label="Option" problem={problem}>
      {(props) => (
        <select {...props} value={value} onChange={({ target }) => onChange(target.value)}>
          {options.map((one) => (
            <option key={one}>{one}</option>
          ))}
        </select>
      )}
    </Field>
  );
}

/** Fields of an entry that is no channel. */
function EntryFields({
  kind,
  name,
  ...fields
}: {
  readonly kind: ConfigEntryView['kind'];
  readonly name: string;
} & Pick<Parameters<typeof SchemaPart>[0], 'schema' | 'value' | 'onChange' | 'problems'>) {
  if (kind !== 'price') {
    const label = kind === 'alias' ? 'Model' : kind === 'access' ? 'Models' : name;
    return <SchemaPart label={label} path="" {...fields} />;
  }
  return (
    <>
      <MemberFields label="the price" path="" {...fields} wanted={['input', 'output', 'cacheRead']} />
      <p className="hint muted small">Dollars per million tokens.</p>
    </>
  );
}

function schemaOf(
  kind: ConfigEntryView['kind'],
  name: string,
  { forms, price }: ConfigForms,
  channel: JsonSchema | undefined,
): JsonSchema {
  if (kind === 'channel') return channel ?? {};
  if (kind === 'price') return price;
  if (kind === 'alias') return oneModel;
  return kind === 'access' ? listOfModels : (forms.find((form) => form.name === name)?.schema ?? {});
}

/** Returns the problem for which the stored entry is refused. */
function firstProblems(entry: ConfigEntryView | undefined): ReturnType<typeof problemsOf> {
  const { problem } = entry ?? {};
  if (entry === undefined || problem === undefined) return { at: {}, others: [] };
  const path = problem.option === undefined ? '' : pathWithin(entry, problem.option);
  return path === ''
    ? { at: {}, others: [problem.message] }
    : { at: { [path]: problem.message }, others: [] };
}
