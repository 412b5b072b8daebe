// Draws what a running command shows of itself. Everything that comes in is put in as text or as numbers, never as markup.
(() => {
  'use strict';
  const main = document.getElementById('live');
  const part = (id) => document.getElementById(id);
  const SVG = 'http://www.w3.org/2000/svg';

  /** An element with attributes and children; strings become text. */
  const make = (name, attributes, ...children) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };
  const draw = (name, attributes, ...children) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    element.append(...children);
    return element;
  };

  const known = (value) => typeof value === 'number' && Number.isFinite(value);
  /** A number as people read it; a dash where there is none. */
  const shown = (value, unit = '') => {
    if (!known(value)) return '–';
    const size = Math.abs(value);
    const digits = size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
    // What is not nothing does not look like it: 1e-5.
    const tiny = size > 0 && size < 0.001;
    const text = tiny ? value.toExponential() : value.toLocaleString('en', { maximumFractionDigits: digits });
    return unit ? `${text} ${unit}` : text;
  };
  const minutes = (seconds) => {
    if (!known(seconds)) return '–';
    const whole = Math.max(0, Math.round(seconds));
    return whole < 90 ? `${whole} s` : `${Math.round(whole / 60)} min`;
  };
  const list = (value) => (Array.isArray(value) ? value : []);

  /** Named by the heading of its part; the first cell of a row names the row. */
  const table = (titleId, columns, rows) => {
    const head = make('tr', {}, ...columns.map((name) => make('th', { scope: 'col' }, name)));
    const body = rows.map((cells) => make('tr', {}, ...cells.map((cell, index) => (
      cell instanceof Node ? cell : make(index === 0 ? 'th' : 'td', index === 0 ? { scope: 'row' } : {}, String(cell))))));
    return make('table', { 'aria-labelledby': titleId }, make('thead', {}, head), make('tbody', {}, ...body));
  };

  /** What a load counts, and what CPU time is told per. Sessions are not named. */
  const UNITS = {
    sessions: ['sessions', 'CPU/session/s'],
    connections: ['connections', 'CPU/connection/s'],
    connections_per_second: ['connections per second', 'CPU/connection'],
    messages_per_second: ['messages per second', 'CPU/message'],
    receivers: ['receivers', 'CPU/receiver/s'],
  };
  const unitOf = (live) => {
    const unit = live.load_unit || 'sessions';
    if (UNITS[unit]) return UNITS[unit];
    // The unit of a workload that this page does not know has its words in its name.
    const words = String(unit).replaceAll('_', ' ');
    const one = words.replace(/ per second$/, '').replace(/s$/, '');
    return [words, `CPU/${one}${words.endsWith(' per second') ? '' : '/s'}`];
  };

  const PHASES = { starting: 'starting', ramp: 'ramp', warm_up: 'warm-up', measured: 'measured', grace: 'grace' };

  const drawTrial = (live) => {
    const trial = live.trial;
    const left = `About ${shown(live.trials_left)} trials and ${minutes(live.time_left_s)} left.`;
    if (!trial) {
      part('trial').replaceChildren(make('p', {}, 'Between two trials.'), make('p', {}, left));
      return;
    }
    const why = trial.why ? ` (${trial.why})` : '';
    const at = `Trial ${trial.number} of ${live.target}: ${shown(trial.sessions)} ${unitOf(live)[0]}${why}, `
      + `${PHASES[trial.phase] || trial.phase}, second ${trial.at_s}`;
    const phases = live.phases || {};
    const lasts = (phases.ramp_s || 0) + (phases.warm_up_s || 0) + (phases.measured_s || 0);
    const bar = make('progress', { max: String(Math.max(1, lasts)), value: String(Math.min(trial.at_s, Math.max(1, lasts))) });
    bar.setAttribute('aria-label', 'of the trial');
    part('trial').replaceChildren(make('p', {}, at), bar, make('p', {}, left));
  };

  const drawGates = (live) => {
    const rows = list(live.gates).map((gate) => {
      const seen = known(gate.observed);
      const holds = seen && gate.observed <= gate.threshold;
      const word = !seen ? 'not known yet' : holds ? 'holds' : 'does not hold';
      return [gate.name, shown(gate.threshold), shown(gate.observed),
        make('td', { class: !seen ? '' : holds ? 'good' : 'bad' }, word)];
    });
    part('gates').replaceChildren(table('gates-title', ['gate', 'at most', 'now', 'outcome'], rows));
  };

  const mark = (verdict, x, y) => {
    if (verdict === 'pass') return draw('circle', { cx: x, cy: y, r: 4.5, class: 'passed' });
    if (verdict === 'fail') {
      return draw('path', { d: `M${x - 4} ${y - 4}l8 8m0 -8l-8 8`, class: 'failed' });
    }
    return draw('path', { d: `M${x} ${y - 5}l5 9h-10z`, class: 'invalid' });
  };

  const drawBracket = (live) => {
    const trials = list(live.trials).filter((trial) => trial.target === live.target && known(trial.sessions));
    const now = live.trial && known(live.trial.sessions) ? live.trial.sessions : null;
    const loads = trials.map((trial) => trial.sessions).concat(now === null ? [] : [now]);
    const { highest_pass: passes, lowest_fail: fails } = live.bracket || {};
    const words = [
      known(passes) ? `passed up to ${shown(passes)}` : 'no trial passed yet',
      known(fails) ? `failed from ${shown(fails)}` : 'no trial failed yet',
    ].join(', ');
    const children = [make('p', {}, words)];
    if (loads.length > 0) {
      const most = Math.max(...loads) * 1.05;
      const at = (load) => 16 + (load / most) * 688;
      const svg = draw('svg', { viewBox: '0 0 720 64', class: 'load-lines', role: 'img', 'aria-label': words });
      svg.append(draw('line', { x1: 16, y1: 36, x2: 704, y2: 36, class: 'axis' }));
      if (known(passes) && known(fails) && passes < fails) {
        svg.append(draw('line', { x1: at(passes), y1: 36, x2: at(fails), y2: 36, class: 'span' }));
      }
      for (const trial of trials) svg.append(mark(trial.verdict, at(trial.sessions), 36));
      if (now !== null) {
        svg.append(draw('path', { d: `M${at(now)} 26l-5 -9h10z`, class: 'now' }));
        svg.append(draw('text', { x: at(now), y: 12, 'text-anchor': 'middle' }, shown(now)));
      }
      for (const [load, anchor] of [[0, 'start'], [most, 'end']]) {
        svg.append(draw('text', { x: at(load), y: 58, 'text-anchor': anchor }, shown(Math.round(load))));
      }
      children.push(svg);
    }
    part('bracket').replaceChildren(...children);
  };

  const faults = (second) => (second.errors || 0) + (second.protocol_faults || 0) + (second.sessions_lost || 0);
  const MIB = 1024 * 1024;
  const SERIES = [
    ['newest-p95', 'newest p95', 'ms', (s) => s.newest_p95_ms, 'newest_p95_ms'],
    ['oldest-p95', 'oldest p95', 'ms', (s) => s.oldest_p95_ms, 'oldest_p95_ms'],
    ['sessions', (live) => (unitOf(live) === UNITS.sessions ? 'sessions open' : 'connections open'), '', (s) => s.sessions_open],
    ['faults', 'errors, faults, lost sessions', '', faults],
    ['send-lag', 'send lag p99 (the client’s own)', 'µs', (s) => s.send_lag_p99_us],
    ['send-wait', 'send wait p99 (back-pressure)', 'µs', (s) => s.send_wait_p99_us],
    ['target-cpu', 'CPU of the target', 'cores', (s) => s.target_cpu_cores],
    ['client-cpu', 'CPU of the busiest client thread', '%', (s) => (known(s.client_cpu_share) ? s.client_cpu_share * 100 : null)],
    ['inference-cpu', 'CPU of the simulator', 'cores', (s) => s.inference_cpu_cores],
    ['rss', 'RSS of the target', 'MiB', (s) => (known(s.target_rss_bytes) ? s.target_rss_bytes / MIB : null)],
  ];

  /** Pieces of a line: it has gaps where a second has no value. */
  const pieces = (values, x, y) => {
    const found = [];
    let piece = [];
    values.forEach((value, index) => {
      if (known(value)) {
        piece.push(`${x(index).toFixed(1)},${y(value).toFixed(1)}`);
      } else if (piece.length > 0) {
        found.push(piece);
        piece = [];
      }
    });
    if (piece.length > 0) found.push(piece);
    return found;
  };

  const sparkline = (live, [id, naming, unit, of, gateName]) => {
    const name = typeof naming === 'function' ? naming(live) : naming;
    const values = list(live.seconds).map(of);
    const there = values.filter(known);
    const last = there.length > 0 ? there[there.length - 1] : null;
    const gate = list(live.gates).find((found) => found.name === gateName);
    const most = Math.max(...there, gate ? gate.threshold : 0, 1e-9) * 1.05;
    const x = (index) => 2 + (index / Math.max(1, values.length - 1)) * 316;
    const y = (value) => 58 - (Math.max(0, value) / most) * 54;
    const svg = draw('svg', {
      viewBox: '0 0 320 60', role: 'img', 'aria-label': `${name}: ${shown(last, unit)}`,
      'data-test': 'live-sparkline', 'data-series': id,
    });
    svg.append(draw('line', { x1: 2, y1: 58, x2: 318, y2: 58, class: 'axis' }));
    if (gate && known(gate.threshold)) {
      svg.append(draw('line', { x1: 2, y1: y(gate.threshold), x2: 318, y2: y(gate.threshold), class: 'gate' }));
    }
    for (const piece of pieces(values, x, y)) {
      const [px, py] = piece[0].split(',');
      svg.append(piece.length === 1
        ? draw('circle', { cx: px, cy: py, r: 2, class: 'dot' })
        : draw('polyline', { points: piece.join(' '), class: 'line' }));
    }
    const caption = make('figcaption', {}, make('span', {}, name), make('b', {}, shown(last, unit)));
    return make('figure', {}, caption, svg);
  };

  const drawTrials = (live) => {
    const percent = (share) => (known(share) ? `${shown(share * 100)} %` : '–');
    // Not every workload says how much was done.
    const escalates = list(live.trials).some((trial) => trial.goodput);
    const done = (trial) => {
      const { due_per_s: due, good_per_s: good, failed_share: failed } = trial.goodput || {};
      return escalates ? [shown(due), shown(good), percent(failed), String(trial.broke_first || '')] : [];
    };
    const rows = list(live.trials).slice().reverse().map((trial) => [
      trial.number, trial.target, shown(trial.sessions),
      make('td', { class: trial.verdict === 'pass' ? 'good' : 'bad' }, String(trial.verdict)),
      shown(trial.newest_p50_ms, 'ms'), shown(trial.newest_p95_ms, 'ms'), shown(trial.cpu_us_per_session_second, 'µs'),
      ...done(trial),
    ]);
    const [counted, cost] = unitOf(live);
    const columns = ['trial', 'target', counted, 'verdict', 'newest p50', 'newest p95', cost,
      ...(escalates ? ['offered /s', 'goodput /s', 'failed', 'broke first'] : [])];
    part('trials').replaceChildren(rows.length > 0 ? table('trials-title', columns, rows) : make('p', {}, 'None yet.'));
  };

  const say = (state, text) => {
    main.dataset.state = state;
    // Said once, not every second: this is read aloud.
    if (part('state').textContent !== text) part('state').textContent = text;
  };

  const drawAll = (live) => {
    const what = `${live.command} ${list(live.targets).join(', ')}`;
    part('what').textContent = what;
    document.title = `Live: ${what}`;
    main.dataset.updated = live.updated_at;
    drawTrial(live);
    drawGates(live);
    drawBracket(live);
    part('seconds').replaceChildren(...SERIES.map((series) => sparkline(live, series)));
    drawTrials(live);
    const vcpu = known(live.vcpu) ? `, ${shown(live.vcpu)} vCPU` : '';
    say('live', `running since ${live.started_at}, profile ${live.profile}, SLO ${live.slo}${vcpu}`);
  };

  const follow = () => {
    const source = new EventSource(main.dataset.events);
    source.addEventListener('live', (event) => drawAll(JSON.parse(event.data)));
    source.addEventListener('silent', () => {
      say('silent', 'No news for some seconds: the command takes its time with something, or it crashed.');
    });
    source.addEventListener('ended', () => {
      source.close();
      say('ended', 'The command has ended.');
      part('over').hidden = false;
    });
    source.addEventListener('error', () => {
      if (main.dataset.state === 'ended') return;
      say('lost', 'The connection is lost; asking again.');
      // After most failures the browser asks again by itself, and goes on where things then are. After some it gives up.
      if (source.readyState === EventSource.CLOSED) setTimeout(follow, 2000);
    });
  };
  follow();
})();
