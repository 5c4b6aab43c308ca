-- The connection to the server: one language client for this Neovim, attached to
-- every buffer that is a file, so that the agent sees unsaved text.
local M = { id = nil }

-- vim.lsp changed from functions to methods in 0.11.
local methods = vim.fn.has('nvim-0.11') == 1

local function root()
  local set = require('lakecode').config.root
  if set then
    return vim.fn.fnamemodify(set, ':p'):gsub('(.)/$', '%1')
  end
  local dir = vim.fn.getcwd()
  local git = vim.fn.finddir('.git', vim.fn.escape(dir, ' ;,') .. ';')
  if git == '' then
    git = vim.fn.findfile('.git', vim.fn.escape(dir, ' ;,') .. ';')
  end
  if git ~= '' then
    return vim.fn.fnamemodify(git, ':p:h' .. (vim.fn.isdirectory(git) == 1 and ':h' or ''))
  end
  return dir
end

local function client()
  return M.id and vim.lsp.get_client_by_id(M.id)
end

local function is_file(buf)
  return vim.api.nvim_buf_is_loaded(buf) and vim.bo[buf].buftype == '' and vim.api.nvim_buf_get_name(buf) ~= ''
end

local function attach(buf)
  if M.id and is_file(buf) then
    vim.lsp.buf_attach_client(buf, M.id)
  end
end

local function watch_buffers()
  local group = vim.api.nvim_create_augroup('lakecode', { clear = true })
  vim.api.nvim_create_autocmd({ 'BufReadPost', 'BufNewFile', 'BufEnter', 'BufFilePost' }, {
    group = group,
    desc = 'show the buffer to Lakecode',
    callback = function(args)
      attach(args.buf)
    end,
  })
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    attach(buf)
  end
end

--- Makes buffers without changes of their own show what is on disk now. Each is
--- named, since a plain :checktime may be put off until the next key.
function M.reload()
  for _, buf in ipairs(vim.api.nvim_list_bufs()) do
    if is_file(buf) and not vim.bo[buf].modified then
      vim.cmd('silent! checktime ' .. buf)
    end
  end
end

--- Starts the server unless it runs. on is a table of functions: ready(),
--- events(params), state(params), gone(code, signal). Returns false when it
--- cannot be started; a message has been shown then.
function M.start(on)
  if client() then
    return true
  end
  local cmd = require('lakecode').config.cmd
  if vim.fn.executable(cmd[1]) == 0 then
    vim.notify('Lakecode: ' .. cmd[1] .. ' is not executable. Put it into PATH or name it in setup{ cmd = { ... } }.', vim.log.levels.ERROR)
    return false
  end
  local capabilities = vim.lsp.protocol.make_client_capabilities()
  capabilities.experimental = { lakecode = { versions = { 1 }, cards = true, events = true } }
  local function handler(f)
    return function(_, params)
      f(params)
      return vim.NIL
    end
  end
  local dir = root()
  M.id = vim.lsp.start_client({
    name = 'lakecode',
    cmd = cmd,
    root_dir = dir,
    workspace_folders = { { uri = vim.uri_from_fname(dir), name = dir } },
    capabilities = capabilities,
    -- A change must be at the server before the message that talks about it.
    flags = { debounce_text_changes = 0, allow_incremental_sync = true },
    handlers = { ['lakecode/events'] = handler(on.events), ['lakecode/state'] = handler(on.state), ['lakecode/status'] = handler(function() end) },
    on_init = function()
      vim.schedule(function()
        watch_buffers()
        on.ready()
      end)
    end,
    on_exit = function(code, signal)
      vim.schedule(function()
        M.id = nil
        pcall(vim.api.nvim_del_augroup_by_name, 'lakecode')
        on.gone(code, signal)
      end)
    end,
  })
  if not M.id then
    vim.notify('Lakecode: the server could not be started; see :lua print(vim.lsp.get_log_path())', vim.log.levels.ERROR)
  end
  return M.id ~= nil
end

--- Sends a request. done(result) is called with the result; failed(message),
--- which may be nil for a plain message, when the server refuses.
function M.request(method, params, done, failed)
  local c = client()
  if not c then
    vim.notify('Lakecode: the server does not run; :Lakecode starts it.', vim.log.levels.WARN)
    return
  end
  local function answer(err, result)
    if err then
      local text = err.message or vim.inspect(err)
      if type(err.data) == 'table' and type(err.data.next) == 'string' then
        text = text .. ' ' .. err.data.next
      end
      if failed then
        failed(text)
      else
        vim.notify('Lakecode: ' .. text, vim.log.levels.ERROR)
      end
    elseif done then
      done(result)
    end
  end
  -- An empty table would be sent as an array.
  if next(params) == nil then
    params = vim.empty_dict()
  end
  -- Without debounce no change of any buffer waits, so it does not matter which
  -- buffer the request is made for.
  local buf = vim.api.nvim_get_current_buf()
  if methods then
    c:request(method, params, answer, buf)
  else
    c.request(method, params, answer, buf)
  end
end

--- Ends the server.
function M.stop()
  local c = client()
  if not c then
    return
  end
  if methods then
    c:stop()
  else
    c.stop()
  end
end

--- Is the server running?
function M.running()
  return client() ~= nil
end

return M
