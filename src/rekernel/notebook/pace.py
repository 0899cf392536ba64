"""When a view steps, draws and sends, and who looks at it. Pure: times come from outside."""

from __future__ import annotations

from dataclasses import dataclass, field

AWAY = 5.0
"""Seconds after which a page that acknowledges nothing is taken for closed. It comes back with its next message."""
_LAG = 0.25
"""Seconds of steps that are made up for, at most; what was missed while a cell ran is not."""
_RATE_EVERY = 0.5


@dataclass
class Pace:
    """How fast a view goes: `speed` steps a second, or as many as there is time for; `fps` pictures a second."""

    fps: float
    speed: float | None = None
    _since: float = 0.0
    _done: int = 0
    _next_picture: float = 0.0
    _rate_from: tuple[float, int] | None = None
    rate: float | None = None
    """Steps a second, as measured."""

    def start(self, now: float) -> None:
        """Begin to count here."""
        self._since, self._done, self._rate_from, self.rate = now, 0, None, None

    def step_due(self, now: float) -> bool:
        """Whether it is time for a step."""
        if self.speed is None:
            return True
        ahead = (now - self._since) * self.speed - self._done
        if ahead > 1 + _LAG * self.speed:
            self._since, self._done = now, 0
            return True
        return ahead >= 0

    def stepped(self) -> None:
        """Count a step."""
        self._done += 1

    def picture_due(self, now: float) -> bool:
        """Whether it is time for a picture."""
        return now >= self._next_picture

    def drawn(self, now: float) -> None:
        """Note that a picture was made."""
        self._next_picture = now + 1 / self.fps

    def measure(self, now: float, steps: int) -> bool:
        """Measure the rate from a running count of steps; True when there is a new value."""
        if self._rate_from is None:
            self._rate_from = now, steps
            return False
        then, before = self._rate_from
        if now - then < _RATE_EVERY:
            return False
        self.rate, self._rate_from = (steps - before) / (now - then), (now, steps)
        return True

    def pause(self, now: float, stepping: bool, drawing: bool, waiting: bool) -> float:
        """Return how long nothing is due: no step, nor a picture if there is one to draw and the page is ready."""
        if stepping and self.speed is None:
            return 0.0
        dues = [1.0]
        if stepping and self.speed is not None:
            dues.append(self._since + self._done / self.speed - now)
        if drawing:
            dues.append(1 / self.fps if waiting else self._next_picture - now)
        return max(0.0, min(dues))


@dataclass
class Watchers:
    """The pages' views of one picture: which are there, and which have taken the last one."""

    _taken: dict[str, int] = field(default_factory=dict)
    _sent: int = 0
    _sent_at: float = 0.0

    def came(self, view: str, taken: int = 0) -> None:
        """A view was shown, or has taken the picture of that number."""
        self._taken[view] = max(taken, self._taken.get(view, 0))

    def went(self, view: str) -> None:
        """A view was closed."""
        self._taken.pop(view, None)

    def sent(self, frame: int, now: float) -> None:
        """A picture is on its way to all of them."""
        self._sent, self._sent_at = frame, now

    def waiting(self, now: float) -> bool:
        """Whether somebody has not taken the last picture yet. Who is silent for long is not waited for."""
        late = [view for view, taken in self._taken.items() if taken < self._sent]
        if late and now - self._sent_at > AWAY:
            for view in late:
                del self._taken[view]
            late = []
        return bool(late)

    def __bool__(self) -> bool:
        """Whether anybody looks."""
        return bool(self._taken)
