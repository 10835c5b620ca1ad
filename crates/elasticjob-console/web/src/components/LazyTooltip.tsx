import { Tooltip } from "@mantine/core";
import {
  cloneElement,
  type ReactElement,
  type ReactNode,
  useEffect,
  useRef,
  useState,
} from "react";

/** Delay (ms) before the tooltip opens. */
const OPEN_DELAY = 300;

interface HoverProps {
  onMouseEnter?: (event: { currentTarget: HTMLElement }) => void;
  onMouseLeave?: () => void;
  onFocus?: (event: { currentTarget: HTMLElement }) => void;
  onBlur?: () => void;
}

/** A tooltip that is mounted on hover or focus, for elements that occur hundreds of times on a page. */
export function LazyTooltip({
  label,
  children,
}: {
  label: () => ReactNode;
  children: ReactElement<HoverProps>;
}) {
  const [target, setTarget] = useState<HTMLElement | null>(null);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const open = ({ currentTarget }: { currentTarget: HTMLElement }) => {
    clearTimeout(timer.current);
    timer.current = setTimeout(() => setTarget(currentTarget), OPEN_DELAY);
  };
  const close = () => {
    clearTimeout(timer.current);
    setTarget(null);
  };
  useEffect(() => () => clearTimeout(timer.current), []);
  return (
    <>
      {cloneElement(children, {
        onMouseEnter: open,
        onMouseLeave: close,
        onFocus: open,
        onBlur: close,
      })}
      {target && <Tooltip target={target} opened label={label()} />}
    </>
  );
}
