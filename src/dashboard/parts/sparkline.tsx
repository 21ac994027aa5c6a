/** A line of a few numbers in a row of a list. It is SVG, because the library of charts would belong to the first view. */
type SparklineProps = { values: readonly number[]; max: number };

const [width, height] = [48, 18];

/** The newest value stands beside it as text. */
export function Sparkline({ values, max }: SparklineProps) {
  const step = width / Math.max(1, values.length - 1);
  const y = (value: number) => height - 1 - (Math.min(value, max) / Math.max(max, 1e-9)) * 16;
  const points = values.map((value, index) => `${index * step},${y(value)}`);
  return (
    <svg class="sparkline" aria-hidden="true" viewBox={`0 0 ${width} ${height}`}>
      <polyline points={points.join(" ")} />
    </svg>
  );
}
