import { Tooltip } from "@mantine/core";
import {
  cloneElement,
  type ReactElement,
  type ReactNode,
  useEffect,
  useRef,
  useState,
} from "react";

/** How long one points at something before it is explained. */
const OPEN_DELAY = 300;

interface HoverProps {
  onMouseEnter?: (event: { currentTarget: HTMLElement }) => void;
  onMouseLeave?: () => void;
  onFocus?: (event: { currentTarget: HTMLElement }) => void;
  onBlur?: () => void;
}

/** A tooltip that costs nothing until somebody points at it: for what is on a page a hundred times. */
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
