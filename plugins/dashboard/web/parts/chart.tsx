/** Charts over time, with their legend. */
import { useEffect, useRef, useState } from 'react';
import uPlot from 'uplot';
import { colour, useIsDark } from './theme.ts';
import { axisTime, toTheMinute } from './text.ts';

/** One line or set of columns. `colour` is a name of the style sheet: `--accent`. */
export interface Series {
  readonly label: string;
  readonly colour: string;
  readonly values: readonly (number | null)[];
  readonly kind: 'line' | 'columns';
}

interface Tip {
  readonly index: number;
  readonly left: number;
}

/** A chart over time. Columns are drawn one in front of the other, so the larger comes first. */
export function Chart({
  label,
  times,
  series,
  show,
}: {
  readonly label: string;
  /** Seconds since 1970, ascending. */
  readonly times: readonly number[];
  readonly series: readonly Series[];
  readonly show: (value: number) => string;
}) {
  const place = useRef<HTMLDivElement>(null);
  const [tip, setTip] = useState<Tip>();
  const dark = useIsDark();

  useEffect(() => {
    const element = place.current;
    if (element === null) return undefined;
    const data = [[...times], ...series.map(({ values }) => [...values])] as uPlot.AlignedData;
    const options = optionsOf(element.clientWidth, times, series, show, setTip);
    const chart = new uPlot(options, data, element);
    const observer = new ResizeObserver(() => chart.setSize({ width: element.clientWidth, height: 190 }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      chart.destroy();
      setTip(undefined);
    };
  }, [times, series, show, dark]);

  const time = tip === undefined ? undefined : times[tip.index];
  return (
    <div className="chart" role="img" aria-label={label}>
      <div ref={place} />
      {tip !== undefined && time !== undefined && (
        <TipBox tip={tip} time={time} width={place.current?.clientWidth ?? 0} series={series} show={show} />
      )}
    </div>
  );
}

/** The values at the place of the pointer. */
function TipBox({
  tip,
  time,
  width,
  series,
  show,
}: {
  readonly tip: Tip;
  /** Seconds since 1970. */
  readonly time: number;
  /** Width of the chart in pixels. */
  readonly width: number;
  readonly series: readonly Series[];
  readonly show: (value: number) => string;
}) {
  return (
    <div
      className="tip"
      style={
        tip.left > width / 2 ? { right: width - tip.left + 12, top: 8 } : { left: tip.left + 12, top: 8 }
      }
    >
      <span className="muted">{toTheMinute(time * 1000)}</span>
      {series.map(({ label: name, colour: key, values }) => {
        const value = values[tip.index];
        return (
          <span key={name}>
            <i style={{ background: `var(${key})` }} />
            {name}
            <b>{value === null || value === undefined ? '–' : show(value)}</b>
          </span>
        );
      })}
    </div>
  );
}

const font = '11px system-ui, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';

function optionsOf(
  width: number,
  times: readonly number[],
  series: readonly Series[],
  show: (value: number) => string,
  setTip: (tip: Tip | undefined) => void,
): uPlot.Options {
  const half = times.length > 1 ? ((times[1] ?? 0) - (times[0] ?? 0)) / 2 : 1;
  return {
    width,
    height: 190,
    padding: [8, 18, 0, 0],
    legend: { show: false },
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    scales: {
      // Half a bucket on both sides, so that the first and last columns are whole.
      x: { time: true, range: (_chart, low, high) => [low - half, high + half] },
      y: { range: (_chart, _low, high) => [0, high > 0 ? high * 1.06 : 1] },
    },
    axes: axesOf(show),
    series: [{}, ...series.map(lineOf)],
    hooks: {
      setCursor: [
        (self) => {
          const { idx, left = -1 } = self.cursor;
          setTip(
            idx === null || idx === undefined || left < 0
              ? undefined
              : { index: idx, left: left + self.bbox.left / devicePixelRatio },
          );
        },
      ],
    },
  };
}

function axesOf(show: (value: number) => string): uPlot.Axis[] {
  const muted = colour('--muted');
  const grid = { stroke: colour('--line'), width: 1, dash: [2, 3] };
  return [
    {
      stroke: muted,
      grid: { show: false },
      ticks: { show: false },
      font,
      gap: 5,
      size: 24,
      values: (_chart, splits, _axis, _space, step) => splits.map((time) => axisTime(time, step)),
    },
    {
      stroke: muted,
      grid,
      ticks: { show: false },
      font,
      gap: 6,
      size: 58,
      space: 38,
      values: (_chart, values) => values.map((value) => show(value).replace(/\.0+(?=\D|$)/, '')),
    },
  ];
}

function lineOf({ label, colour: key, kind, values }: Series): uPlot.Series {
  const known = values.filter((value) => value !== null).length;
  const stroke = colour(key);
  const columns = uPlot.paths.bars?.({ size: [0.72, 22], align: 0 });
  return {
    label,
    stroke,
    width: kind === 'columns' ? 0 : 1.75,
    ...(kind === 'columns' && columns !== undefined && { fill: stroke, paths: columns }),
    points: { show: kind === 'line' && known < 8, size: 5 },
    spanGaps: kind === 'line',
  };
}

/** Explains the colours of a chart. */
export function Legend({ series }: { readonly series: readonly Series[] }) {
  return (
    <div className="legend" aria-hidden="true">
      {series.map(({ label, colour: key }) => (
        <span key={label}>
          <i style={{ background: `var(${key})` }} />
          {label}
        </span>
      ))}
    </div>
  );
}
